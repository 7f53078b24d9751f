"""`dpaa backtest`: would the choice of `dpaa debias` have kept its promise?  Asked month after month."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from textwrap import fill
from typing import Annotated, Any

from typer import Argument, Option

from dpaa.cli import options
from dpaa.cli.console import cells, err, out, print_json, print_notes, print_table
from dpaa.cli.interrupts import resumable
from dpaa.errors import MissingExtraError


@dataclass(frozen=True)
class _ChoiceOptions(options.ChoiceOptions):
    """As those of `dpaa debias`, with a promise."""

    keep_accuracy: options.KeepAccuracy = "0.98"


@options.grouped(source=options.LogOptions, choice=_ChoiceOptions)
def backtest(
    files: Annotated[list[str], Argument(metavar="FILE|FOLDER|PATTERN|-…", help="A log with times.")],
    out_folder: Annotated[Path, Option("--out", help="Folder for the origins, the table and the page.")],
    source: options.LogOptions,
    choice: _ChoiceOptions,
    every: Annotated[
        str, Option(metavar="PERIOD[,start=DATE]", help="month, week or DAYS; no origin before start=2024-03-01.")
    ] = "month",
    valid: Annotated[float, Option(help="Share of earlier pairs for validation.", rich_help_panel="Split")] = 0.1,
    min_pairs: options.MinPairs = "1",
    overwrite: Annotated[bool, Option("--overwrite", help="Do again what is of another log or other options.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Choose with `dpaa debias` at the start of every month of a log, and measure the choice on that month.

    At each origin only what came before is known: the latest of it is validation, and the period after it is opened
    when the choice is made; --max-minutes are those of each origin.  Rivals are the choice of the origin before, fitted
    again, and the first choice, never updated.  The same call resumes after an interruption.

    \b
    Example:
      dpaa backtest clicks.csv --every month --methods ease,item-knn --out backtest
      dpaa backtest orders/*.csv --every 14,start=2024-03-01 --keep-accuracy 0.95 --invalid drop --out backtest
    """
    from dpaa.data.inputs import open_log
    from dpaa.debiasing import backtest as run

    source.check(overwrite)
    period = options.parse_values(every, "every", value=str, start=datetime.fromisoformat)
    how: dict[str, Any] = {"every": period.get("value", "month"), "start": period.get("start"), "valid": valid}
    how |= {"items": source.items}
    how |= {"columns": source.names, "overwrite": overwrite, **source.rows, **choice.arguments}
    how |= options.parse_min_pairs(min_pairs)
    with resumable(out_folder):
        result = run(out_folder, open_log(files, **source.reading), say=err.print, **how)
    source.write_invalid(result.invalid)
    try:
        from dpaa.report import backtest_page

        backtest_page(result.as_json(), out_folder / "backtest.html")
        page = f"the picture of all choices is in {out_folder / 'backtest.html'}"
    except MissingExtraError as error:
        page = f"there is no page: {error}"
    if as_json:
        print_json(result.as_json())
        return
    rows, k = [], choice.k
    for period in result.periods:
        measured = [period[who] for who in ("chosen", "previous", "never_updated")]
        changes = cells("+.1%", measured[0]["change"]["low"], *(one and one["change"]["estimate"] for one in measured))
        niche = "→".join(cells(".3f", *(period[who]["metrics"][f"recall@{k}/niche"] for who in ("base", "chosen"))))
        label = fill(f"{period['origin']}: {measured[0]['name']}", 20, subsequent_indent="  ")
        rows.append([label, f"{period['following']['users']:,}", changes[1], changes[0], niche, *changes[2:]])
    header = ["origin: choice", "users", "NDCG", "bound", "niche", "previous", "first"]
    print_table(f"NDCG@{k} against the baseline; recall@{k}/niche, baseline→choice", header, rows, multiline=True)
    for sentence in result.sentences():
        out.print(f"- {sentence}")
    print_notes([*result.notes, page])
