"""`dpaa debias`: the best trade between accuracy and popularity for a dataset."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from dpaa.cli import options
from dpaa.cli.console import cells, err, number, out, print_json, print_notes, print_table
from dpaa.errors import MissingExtraError

if TYPE_CHECKING:
    from dpaa.cli.interrupts import StopSignals
    from dpaa.frontier.result import Debiased
    from dpaa.methods.base import Method
    from dpaa.runs.progress import Callbacks

SHOWN = 14
"""Rows of the table; `frontier.csv` and `--json` have every point."""
OTHERS = {"coverage": ".1%", "arp": ",.1f"}
"""Metrics told of every point, where they are no goal, and how."""


def debias(
    dataset: options.DatasetArgument,
    out_folder: Annotated[Path, Option("--out", help="Folder for the models, the frontier and the chosen run.")],
    goals: Annotated[
        list[str] | None,
        Option(
            "--goal",
            metavar="niche-recall|coverage|arp|gini|calibration",
            help="What shall get better; repeatable, and then the least improved goal counts; default: niche-recall.",
        ),
    ] = None,
    keep_accuracy: Annotated[
        float | None,
        Option(metavar="SHARE", help="Share of the baseline's accuracy to keep, such as 0.99, confirmed at 95 %."),
    ] = None,
    targets: Annotated[
        list[str] | None,
        Option("--target", metavar='"NAME OP NUMBER"', help='The most accurate point with, say, "coverage>=0.8".'),
    ] = None,
    base: Annotated[
        Path | None, Option(metavar="RUN", help="What is in production now; default: the most accurate model.")
    ] = None,
    methods: Annotated[
        list[str] | None,
        Option("--methods", metavar="NAME[,NAME…]", help="What to train; default: a few strong, different ones."),
    ] = None,
    runs: Annotated[
        list[Path] | None, Option("--runs", metavar="RUN", help="A finished run to use; repeatable; trains no other.")
    ] = None,
    estimate: Annotated[
        str,
        Option(
            metavar="auto|logged|ips|balanced",
            help="How accuracy is judged on validation; auto: ips where it comes from the log's own exposure, else "
            "logged.",
        ),
    ] = "auto",
    rerank: Annotated[
        list[str] | None, Option("--rerank", metavar="NAME", help="Re-rankers to sweep; repeatable; default: all.")
    ] = None,
    k: options.K = 20,
    budget: Annotated[
        float | None,
        Option(metavar="MINUTES", help="No training goes on after so long; its best epoch so far is used."),
    ] = None,
    confidence: Annotated[float, Option(help="With which --keep-accuracy must be confirmed.")] = 0.95,
    assignments: options.Assignments = None,
    seed: options.Seed = 0,
    overwrite: Annotated[bool, Option("--overwrite", help="Train the models again.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Find the best trade between accuracy and popularity: more of the catalogue shown, accuracy kept.

    Several different models are trained (or taken, with --runs), the popularity dial and re-rankers are turned over
    each, and all points are measured on validation.  One is chosen and written to FOLDER/run, a run like any other.
    With --keep-accuracy the choice is confirmed on users who had no part in it, or the baseline is kept.  The test
    split is not opened.  The same call goes on after an interruption, and another wish reuses the models.

    \b
    Example:
      dpaa debias data/coat --keep-accuracy 0.98 --out trade
      dpaa debias data/coat --goal coverage --target "coverage>=0.8" --out trade
      dpaa debias data/coat --base runs/lightgcn --goal arp --goal niche-recall --budget 10 --out trade
    """
    from dpaa.cli.interrupts import StopSignals
    from dpaa.cli.train import read_settings
    from dpaa.data.dataset import read_dataset
    from dpaa.frontier.debias import PAGE, RUN, OutOfReachError
    from dpaa.frontier.debias import debias as find
    from dpaa.training.trainer import Interrupted

    data = read_dataset(dataset)
    signals = StopSignals()
    named = None if methods is None else [name.strip() for one in methods for name in one.split(",") if name.strip()]
    try:
        found = find(
            out_folder,
            data,
            methods=named,
            runs=runs or (),
            base=base,
            goals=goals or ("niche-recall",),
            keep_accuracy=keep_accuracy,
            targets=targets or (),
            estimate=estimate,
            rerank=rerank,
            k=k,
            budget=budget,
            confidence=confidence,
            settings=read_settings(None, assignments or [], None),
            seed=seed,
            overwrite=overwrite,
            watch=lambda method: _watched(method, signals),
            say=err.print,
        )
    except Interrupted:
        err.print(f"stopped; go on with the same call (what is done is in {out_folder})")
        sys.exit(128 + (signals.received or signal.SIGINT))
    except OutOfReachError as error:
        err.print(str(error))
        sys.exit(1)
    page = _page(out_folder, out_folder / PAGE)
    if as_json:
        print_json(found.as_json())
        return
    print_frontier(found)
    if page:
        out.print(f"the frontier as a page: {page}")
    following = "evaluate" if len(data.test) else "recommend"
    out.print(f"run written to {out_folder / RUN}; next: dpaa {following} {out_folder / RUN}")


@contextmanager
def _watched(method: Method, signals: StopSignals) -> Iterator[Callbacks]:
    """A training leaves a checkpoint when it is stopped; between trainings ctrl-C ends at once."""
    from dpaa.cli.progress import watched_training

    with signals, watched_training(method, stop_requested=lambda: signals.received is not None) as callbacks:
        yield callbacks


def _page(folder: Path, page: Path) -> Path | None:
    """The page beside the files; without the extra that draws it there is none, and a note says so."""
    from dpaa.report.page import write_page

    try:
        write_page([folder], page)
    except MissingExtraError as error:
        print_notes([f"there is no page: {error}"])
        return None
    return page.resolve()


def print_frontier(found: Debiased, most: int = SHOWN) -> None:
    """The frontier as a table, each model as it is, and what changes for whom."""
    from dpaa.frontier.estimates import WORDS

    frontier = found.frontier
    plain = [place for place, point in enumerate(frontier.points) if point.candidate.plain]
    line = _some(frontier.line, found.chosen, most)
    shown = [*line, *dict.fromkeys(one for one in (found.chosen, *plain) if one not in line)]
    others = [name for name in OTHERS if name not in {goal.metric.name for goal in frontier.goals}]
    header = ["", "accuracy", "change", "95 %", *(goal.key(frontier.k) for goal in frontier.goals), *others]
    rows = [_row(found, place, others) for place in shown]
    print_table(f"The frontier on {frontier.dataset}, {frontier.chooser.n_users:,} validation users", header, rows)
    out.print("* chosen, = baseline, - beaten by another point; first the frontier, then the models as they are")
    out.print(f"accuracy: NDCG@{frontier.k}; {WORDS[frontier.accuracy.estimate]}; {frontier.exposure.in_words()}")
    for sentence in found.sentences():
        out.print(f"- {sentence}")
    print_notes(found.notes)


def _some(line: list[int], chosen: int, most: int) -> list[int]:
    """At most so many points, evenly spread, the chosen one among them."""
    if len(line) <= most:
        return line
    kept = {line[round(place * (len(line) - 1) / (most - 1))] for place in range(most)} | {chosen}
    return [place for place in line if place in kept]


def _row(found: Debiased, place: int, others: list[str]) -> list[str]:
    frontier = found.frontier
    point, change = frontier.points[place], frontier.changes[place]
    mark = "*" if place == found.chosen else "=" if place == frontier.chooser.base else ""
    mark = mark or ("" if place in frontier.line else "-")
    k = frontier.k
    return [
        f"{mark} {point.candidate.name}".strip(),
        number(point.accuracy_of(frontier.chooser.estimate)),
        *cells("+.1%", change.estimate),
        f"{change.low:+.1%} … {change.high:+.1%}" if isfinite(change.low) else "–",
        *(number(value) for value in point.values),
        *(cell for name in others for cell in cells(OTHERS[name], point.metrics[f"{name}@{k}"])),
    ]
