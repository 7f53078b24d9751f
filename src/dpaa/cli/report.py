"""`dpaa report`: one self-contained page from datasets, runs, comparisons and audits."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from dpaa._io import check_file_target
from dpaa.cli import options
from dpaa.cli.console import err, out, print_notes
from dpaa.errors import InputError


def report(
    paths: Annotated[
        list[Path],
        Argument(metavar="PATH…", help="Prepared datasets, runs, and JSON of `dpaa compare` and `dpaa audit`."),
    ],
    out_file: Annotated[Path | None, Option("--out", help="The page to write, FILE.html.")] = None,
    live: Annotated[
        Path | None, Option(help="Instead or besides: the live page of one run, with a sample of customers, FILE.html.")
    ] = None,
    customers: Annotated[int, Option(min=1, max=1000, help="Customers of the live page.")] = 60,
    titles: Annotated[Path | None, Option(help="Table of item_id and title for the live page.")] = None,
    title: Annotated[str | None, Option(help="Heading of the page.")] = None,
    k: Annotated[int, Option("--k", min=1, help="Length of the lists that exposure is counted in.")] = 20,
    figures: options.FigureFolder = None,
    figure_format: options.FigureFormat = "svg",
    overwrite: options.Overwrite = False,
) -> None:
    """Write one HTML page: the data's long tail, metrics, exposure, winners and losers, training, message weights.

    The page is a single file that loads nothing: it opens without network, can be sent and printed.  Runs show the
    metrics that `dpaa evaluate` wrote; their lists are recomputed.  Nothing is trained or measured here.

    \b
    Example:
      dpaa report data/coat runs/lightgcn runs/dpaa --out report.html
      dpaa report runs/lightgcn --live live.html        # turn the dial without a server
    """
    for file in (out_file, live):
        if file is not None:
            check_file_target(file, (".html", ".htm"), "a page", overwrite=overwrite, make_folders=True)
    if live is not None:
        from dpaa.serving._live import write_live

        if out_file is None and len(paths) != 1:
            raise InputError(f"a live page is of one run, {len(paths)} are named; name one, or give --out as well")
        run = next((path for path in paths if (path / "config.json").exists()), paths[0])
        held = write_live(run, live, customers, titles)
        out.print(f"live page of {held:,} customers written to {live} ({live.stat().st_size / 1e6:.1f} MB)")
    if out_file is None:
        if live is None:
            raise InputError("missing option '--out'; name the page to write, or a live page with --live")
        return
    from dpaa.report import write_page

    made = write_page(paths, out_file, k=k, title=title, figures=figures, figure_format=figure_format)
    print_notes(made.notes)
    out.print(f"page written to {out_file} ({out_file.stat().st_size / 1e6:.1f} MB)")
    if figures is not None:
        err.print(f"figures written to {figures}")
