"""`dpaa debias`: the best trade-off between accuracy and popularity; `dpaa backtest`: the same in past periods."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

import dpaa
from dpaa.cli import options
from dpaa.cli.console import cells, err, number, out, print_json, print_notes, print_table
from dpaa.cli.interrupts import resumable
from dpaa.errors import MissingExtraError

if TYPE_CHECKING:
    from dpaa.debiasing import Debiased
    from dpaa.methods.base import Method
    from dpaa.runs.progress import Callbacks


@options.grouped(choice=options.ChoiceOptions)
def debias(
    dataset: options.DatasetArgument,
    out_folder: Annotated[Path, Option("--out", help="Folder for the models, the frontier and the chosen run.")],
    choice: options.ChoiceOptions,
    targets: Annotated[
        list[str] | None, Option("--target", help='Target, such as "coverage>=0.8"; repeatable.')
    ] = None,
    base: Annotated[Path | None, Option(help="Run, lists or .npz in production; default: most accurate model.")] = None,
    runs: Annotated[list[Path] | None, Option(help="Run, lists or .npz, instead of training; repeatable.")] = None,
    assignments: options.Assignments = None,
    seed: options.Seed = 0,
    overwrite: Annotated[bool, Option("--overwrite", help="Train the models again.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Find the best trade-off between accuracy and popularity: more of the catalogue shown, accuracy kept.

    Trains several different models (or uses --runs), applies the popularity dial and re-rankers to each at several
    strengths, and measures all points on validation.  One is selected and written to FOLDER/run, a run like any other.
    Goals are niche-recall, coverage, arp, gini, calibration, or another metric; with several goals the least improved
    one counts.  With --target the most accurate point that reaches it is selected.  With --keep-accuracy the choice is
    confirmed on held-out users (confidence=0.95), under every plausible exposure; if no point can be confirmed, the
    baseline is kept and the exit code is 1.  The test split is not used.  Repeating the call resumes an interrupted
    one, and a call with another goal reuses the models.

    \b
    Example:
      dpaa debias data/coat --keep-accuracy 0.98 --out debiased
      dpaa debias data/coat --goal coverage --target "coverage>=0.8" --out \\
          debiased
      dpaa debias data/shop --base recs.parquet --keep-accuracy 0.98 --out \\
          debiased
      dpaa debias data/coat --base runs/lightgcn --goal arp --goal niche-recall \\
          --max-minutes 10 --out debiased
    """
    from dpaa.debiasing import PAGE, OutOfReachError
    from dpaa.runs._foreign import RECIPE
    from dpaa.runs.progress import watched_training

    data, settings = dpaa.read_dataset(dataset), options.read_hyperparameters(assignments)
    how: dict[str, Any] = {"runs": runs or (), "base": base, "seed": seed, "targets": targets or ()}
    how |= {"settings": settings, "overwrite": overwrite, **choice.arguments}
    with resumable(out_folder) as signals:

        @contextmanager
        def watch(_method: Method) -> Iterator[Callbacks]:
            with signals:  # a training leaves a checkpoint when it is stopped; between trainings ctrl-C ends at once
                yield watched_training(stop_requested=signals.requested)

        try:
            result = dpaa.debias(out_folder, data, watch=watch, say=err.print, **how)
        except OutOfReachError as error:
            err.print(str(error))
            raise typer.Exit(1) from None
    page = f"frontier page: {(out_folder / PAGE).resolve()}"
    try:
        from dpaa.report import write_page

        write_page([out_folder], out_folder / PAGE)
    except MissingExtraError as error:
        page = f"there is no page: {error}"
    if as_json:
        print_json(result.as_json())
    else:
        print_frontier(result)
        out.print(page)
        if (out_folder / RECIPE).exists():
            out.print(f"to apply the choice to your own lists: dpaa rerank RECS --recipe {out_folder / RECIPE}")
        out.print(f"run written to {out_folder / 'run'}; next: dpaa recommend {out_folder / 'run'}")
    if not result.confirmed:
        err.print("the promise could not be confirmed: the run is the baseline (exit code 1)")
        raise typer.Exit(1)


def print_frontier(result: Debiased, most: int = 14) -> None:
    """Print the frontier as a table, each model alone, and what changes for which users.

    Parameters
    ----------
    result : of `debias`
    most : rows of the frontier to show, evenly spread
    """
    content = result.as_json()
    line = [content["points"][index] for index in result.line]
    plain = [point for point in content["points"] if point["plain"]]
    estimates = [estimate["name"] for estimate in content["estimates"]]
    columns = list(dict.fromkeys([*(goal["metric"] for goal in content["goals"]), f"coverage@{content['k']}"]))
    marks = {content["base"]["name"]: "= ", content["chosen"]["name"]: "* "}
    rows = {}
    step, chosen = -(-len(line) // most), content["chosen"]["name"]
    thinned = [point for place, point in enumerate(line) if not place % step or point["name"] == chosen]
    for point in [*thinned, content["chosen"], content["base"], *plain]:
        numbers = [number(point["accuracy"][name]) for name in estimates] + cells("+.1%", point["accuracy_change"])
        numbers += [number(point["metrics"][name]) for name in columns]
        rows[point["name"]] = [marks.get(point["name"], "") + point["name"], *numbers]
    users, k = content["users"], content["k"]
    title = f"The frontier on {content['dataset']['name']}, {users['all']:,} validation users"
    header = ["", *(f"NDCG@{k} {name}" for name in estimates), "change", *columns]
    print_table(title, header, rows.values())
    out.print("* chosen, = baseline; first the frontier, then the models alone")
    if len(estimates) > 1:
        out.print("logged: all pairs have equal weight; ips: pairs of rarer items have more weight")
        out.print("change: relative to the baseline, of the estimate that falls most")
    out.print(content["validation"]["in_words"])
    for sentence in content["sentences"]:
        out.print(f"- {sentence}")
    print_notes(content["notes"])


@dataclass(frozen=True)
class _ChoiceOptions(options.ChoiceOptions):
    """Options of `dpaa debias`, with a promise by default."""

    keep_accuracy: options.KeepAccuracy = "0.98"


@options.grouped(source=options.LogOptions, choice=_ChoiceOptions)
def backtest(
    files: Annotated[list[str], Argument(metavar="FILE|FOLDER|PATTERN|-…", help="A log with timestamps.")],
    out_folder: Annotated[Path, Option("--out", help="Folder for the origins, the table and the page.")],
    source: options.LogOptions,
    choice: _ChoiceOptions,
    every: Annotated[
        str, Option(metavar="PERIOD[,start=DATE]", help="month, week or DAYS; no origin before start=2024-03-01.")
    ] = "month",
    valid: Annotated[float, Option(help="Share of earlier pairs for validation.", rich_help_panel="Split")] = 0.1,
    min_pairs: options.MinPairs = "1",
    overwrite: Annotated[bool, Option("--overwrite", help="Redo results of another log or other options.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Choose with `dpaa debias` at the start of every month of a log, and measure the choice on that month.

    At each origin only earlier interactions are used, the latest of them for validation; the following period is used
    to evaluate the choice.  --max-minutes applies to each origin.  The choice is compared with the previous origin's
    choice, refitted, and with the first choice, never updated.  Repeating the call resumes an interrupted one.

    \b
    Example:
      dpaa backtest clicks.csv --every month --methods ease,item-knn --out \\
          backtest
      dpaa backtest orders/*.csv --every 14,start=2024-03-01 --keep-accuracy \\
          0.95 --invalid drop --out backtest
    """
    from dpaa.data.inputs import open_log

    source.check(overwrite)
    period = options.parse_values(every, "every", value=str, start=datetime.fromisoformat)
    how: dict[str, Any] = {"every": period.get("value", "month"), "start": period.get("start"), "valid": valid}
    how |= {"items": source.items}
    how |= {"columns": source.names, "overwrite": overwrite, **source.rows, **choice.arguments}
    how |= options.parse_min_pairs(min_pairs)
    with resumable(out_folder):
        result = dpaa.backtest(out_folder, open_log(files, **source.reading), say=err.print, **how)
    source.write_invalid(result.invalid)
    try:
        from dpaa.report import backtest_page

        backtest_page(result.as_json(), out_folder / "backtest.html")
        page = f"a figure of all choices is in {out_folder / 'backtest.html'}"
    except MissingExtraError as error:
        page = f"there is no page: {error}"
    if as_json:
        print_json(result.as_json())
        return
    rows, k = [], choice.k
    for period in result.periods:
        measured = [period[who] for who in ("chosen", "previous", "never_updated")]
        changes = cells("+.1%", measured[0]["change"]["low"], *(e and e["change"]["estimate"] for e in measured))
        niche = "→".join(cells(".3f", *(period[who]["metrics"][f"recall@{k}/niche"] for who in ("base", "chosen"))))
        label = fill(f"{period['origin']}: {measured[0]['name']}", 20, subsequent_indent="  ")
        rows.append([label, f"{period['following']['users']:,}", changes[1], changes[0], niche, *changes[2:]])
    header = ["origin: choice", "users", "NDCG", "bound", "niche", "previous", "first"]
    print_table(f"NDCG@{k} against the baseline; recall@{k}/niche, baseline→choice", header, rows, multiline=True)
    for sentence in result.sentences():
        out.print(f"- {sentence}")
    print_notes([*result.notes, page])
