"""`dpaa debias`: the best trade-off between accuracy and popularity for a dataset."""

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
    from dpaa.debiasing import Debiased
    from dpaa.methods.base import Method
    from dpaa.runs.progress import Callbacks

SHOWN = 14
"""Rows of the table; `frontier.csv` and `--json` have every point."""
OTHERS = {"coverage": ".1%"}
"""Metrics shown of every point, where they are no goal, and how."""


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
        Option(metavar="MINUTES", help="No training continues after so long; its best epoch so far is used."),
    ] = None,
    confidence: Annotated[float, Option(help="With which --keep-accuracy must be confirmed.")] = 0.95,
    assignments: options.Assignments = None,
    seed: options.Seed = 0,
    overwrite: Annotated[bool, Option("--overwrite", help="Train the models again.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Find the best trade-off between accuracy and popularity: more of the catalogue shown, accuracy kept.

    Several different models are trained (or taken, with --runs), the popularity dial and re-rankers are turned over
    each, and all points are measured on validation.  One is chosen and written to FOLDER/run, a run like any other.
    With --keep-accuracy the choice is confirmed on held-out users, or the baseline is kept.  The test
    split is not opened.  The same call resumes after an interruption, and another goal reuses the models.

    \b
    Example:
      dpaa debias data/coat --keep-accuracy 0.98 --out trade
      dpaa debias data/coat --goal coverage --target "coverage>=0.8" --out trade
      dpaa debias data/coat --base runs/lightgcn --goal arp --goal niche-recall --budget 10 --out trade
    """
    from dpaa.cli.interrupts import StopSignals
    from dpaa.cli.train import read_settings
    from dpaa.data.dataset import read_dataset
    from dpaa.debiasing import PAGE, OutOfReachError
    from dpaa.debiasing import debias as choose
    from dpaa.training.trainer import Interrupted

    data = read_dataset(dataset)
    signals = StopSignals()
    named = None if methods is None else [name.strip() for one in methods for name in one.split(",") if name.strip()]
    try:
        result = choose(
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
        err.print(f"stopped; resume with the same call (what is done is in {out_folder})")
        sys.exit(128 + (signals.received or signal.SIGINT))
    except OutOfReachError as error:
        err.print(str(error))
        sys.exit(1)
    page: Path | None = out_folder / PAGE
    try:
        from dpaa.report import write_page

        write_page([out_folder], out_folder / PAGE)
    except MissingExtraError as error:
        print_notes([f"there is no page: {error}"])
        page = None
    if as_json:
        print_json(result.as_json())
        return
    print_frontier(result)
    if page:
        out.print(f"the frontier as a page: {page.resolve()}")
    run, following = out_folder / "run", "evaluate" if len(data.test) else "recommend"
    out.print(f"run written to {run}; next: dpaa {following} {run}")


@contextmanager
def _watched(method: Method, signals: StopSignals) -> Iterator[Callbacks]:
    """A training leaves a checkpoint when it is stopped; between trainings ctrl-C ends at once."""
    from dpaa.runs.progress import watched_training

    with signals, watched_training(method, stop_requested=lambda: signals.received is not None) as callbacks:
        yield callbacks


def print_frontier(result: Debiased, most: int = SHOWN) -> None:
    """Print the frontier as a table, each model as it is, and what changes for whom."""
    frontier, k = result.frontier, result.frontier.k
    line = _some(frontier.line, result.chosen, most)
    plain = [index for index, point in enumerate(frontier.points) if point.candidate.plain]
    others = {name: form for name, form in OTHERS.items() if name not in {goal.metric.name for goal in frontier.goals}}
    rows = []
    for index in dict.fromkeys([*line, result.chosen, *plain]):
        point, change = frontier.points[index], frontier.changes[index]
        mark = "*" if index == result.chosen else "=" if index == frontier.chooser.base else ""
        mark = mark or ("" if index in frontier.line else "-")
        rows.append(
            [
                f"{mark} {point.candidate.name}".strip(),
                number(point.accuracy_of(frontier.chooser.estimate)),
                *cells("+.1%", change.estimate),
                f"{100 * change.low:+.1f} to {100 * change.high:+.1f}" if isfinite(change.low) else "–",
                *(number(value) for value in point.values),
                *(cells(form, point.metrics[f"{name}@{k}"])[0] for name, form in others.items()),
            ]
        )
    header = ["", "accuracy", "change", "95% interval", *(goal.key(k) for goal in frontier.goals), *others]
    print_table(f"The frontier on {frontier.dataset}, {frontier.chooser.n_users:,} validation users", header, rows)
    out.print("* chosen, = baseline, - beaten by another point; first the frontier, then the models as they are")
    out.print(f"accuracy: NDCG@{k}; {frontier.accuracy.as_json()['in_words']}; {frontier.exposure.in_words()}")
    for sentence in result.sentences():
        out.print(f"- {sentence}")
    print_notes(result.notes)


def _some(line: list[int], chosen: int, most: int) -> list[int]:
    """At most so many points, evenly spread, the chosen one among them."""
    if len(line) <= most:
        return line
    kept = {line[round(step * (len(line) - 1) / (most - 1))] for step in range(most)} | {chosen}
    return [index for index in line if index in kept]
