"""`dpaa report`: one self-contained page from datasets, runs, comparisons and audits."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from dpaa._io import check_file_target
from dpaa.cli import options
from dpaa.cli.console import err, out, print_notes


def report(
    paths: Annotated[list[Path], Argument(metavar="PATH…", help="Datasets, runs, JSON of `compare` and `audit`.")],
    out_file: Annotated[Path, Option("--out", help="Report to write, FILE.html.")],
    k: options.K = 20,
    figures: options.FigureFolder = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Write an HTML report: long tail, metrics, exposure, items that gain and lose, training, message weights.

    The report is a single file that works offline and can be sent and printed.  Metrics of runs are those written by
    `dpaa evaluate`; lists are recomputed.  Nothing is trained or evaluated here.

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
