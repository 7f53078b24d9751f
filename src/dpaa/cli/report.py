"""`dpaa report`: one self-contained page from datasets, runs, comparisons and audits."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from dpaa._io import check_file_target
from dpaa.cli import options
from dpaa.cli.console import err, out, print_notes


def report(
    paths: Annotated[list[Path], Argument(metavar="PATH…", help="Datasets, runs, JSON of `compare` and `audit`.")],
    out_file: Annotated[Path, Option("--out", help="The page to write, FILE.html.")],
    k: options.K = 20,
    figures: options.FigureFolder = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Write one HTML page: the data's long tail, metrics, exposure, winners and losers, training, message weights.

    The page is a single file that loads nothing: it opens without network, can be sent and printed.  Runs show the
    metrics that `dpaa evaluate` wrote; their lists are recomputed.  Nothing is trained or measured here.

    \b
    Example:
      dpaa report data/coat runs/lightgcn runs/dpaa --out report.html
    """
    check_file_target(out_file, (".html", ".htm"), "a page", overwrite=overwrite, make_folders=True)
    from dpaa.report import write_page

    print_notes(write_page(paths, out_file, k=k, figures=figures).notes)
    out.print(f"page written to {out_file} ({out_file.stat().st_size / 1e6:.1f} MB)")
    if figures is not None:
        err.print(f"figures written to {figures}")
