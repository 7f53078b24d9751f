"""`dpaa tune`: settings chosen on validation."""

from __future__ import annotations

import signal
import sys
from collections import Counter
from pathlib import Path
from statistics import stdev
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from dpaa._text import counted, file_name
from dpaa.cli import options
from dpaa.cli.console import attributes, err, out, print_json, print_table
from dpaa.errors import InputError

if TYPE_CHECKING:
    from dpaa.tuning.trial import Trial
    from dpaa.tuning.tune import TuneResult

SHOWN = 10
"""Best trials in the table; `trials.jsonl` and `--json` have all."""


def tune(
    dataset: options.DatasetArgument,
    method: options.Method,
    out_folder: Annotated[
        Path | None,
        Option("--out", help="Study folder; default: studies/DATASET-METHOD.  An existing study is resumed."),
    ] = None,
    space: Annotated[
        str, Option(help="wide (ranges, searched by TPE), lists (listed values, by TPE) or paper (the paper's grids).")
    ] = "wide",
    trials: Annotated[int | None, Option(help="Number of trials in all; default: 30, or the whole grid.")] = None,
    tried: Annotated[list[str] | None, Option("--try", metavar="NAME=A,B,…", help="Values to search.")] = None,
    config: Annotated[Path | None, Option(help="TOML file of settings that are not searched.")] = None,
    assignments: options.Assignments = None,
    metric: Annotated[
        list[str] | None,
        Option(
            metavar="KEY",
            help="What to search for on validation, such as recall@20/niche or arp@20 (default: recall@20); given "
            "twice, all trials are kept that no other dominates.",
        ),
    ] = None,
    most_loss: Annotated[
        list[str] | None,
        Option(
            metavar="KEY=SHARE",
            help="How much of another metric may be lost, next to the best of all trials, such as ndcg@20=2%; "
            "repeatable.",
        ),
    ] = None,
    prune_after: Annotated[int, Option(help="Epochs before a trial below the median may be pruned; 0: never.")] = 30,
    seeds: Annotated[int, Option(help="Random seeds that the best settings are trained with, as runs.")] = 3,
    seed: Annotated[int, Option(help="Random seed of the search and of every trial.")] = 0,
    jobs: Annotated[int, Option(help="Trials at a time, one core each.")] = 1,
    storage: Annotated[
        str | None,
        Option(
            metavar="URL",
            help="Where the trials are kept, such as postgresql://me@host/database for several machines (extra: sql); "
            "default: a file in the folder.",
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Search the settings of a method by validation recall@20 (or --metric), and train the best over seeds.

    The test split is not opened.  An existing study is resumed, however it was stopped; calls on other machines with
    the same --storage share the work.

    \b
    Example:
      dpaa tune data/coat --method dpaa --set layers=2 --trials 30 --jobs 2
      dpaa tune data/coat --method lightgcn --space paper --try learning_rate=1e-3,1e-4
      dpaa tune data/coat --method dpaa --metric recall@20/niche --most-loss ndcg@20=2%
      dpaa tune data/coat --method dpaa --metric ndcg@20 --metric arp@20
      dpaa tune data/coat --method dpaa --trials 60 --jobs 8 --storage postgresql://me@db/sweeps
    """
    from dpaa.cli.train import read_settings
    from dpaa.data.dataset import read_dataset
    from dpaa.methods import find_method
    from dpaa.tuning.tune import tune as search

    settings = read_settings(config, assignments or [], None)
    settings.pop("method", None)
    values = dict(read_values(one) for one in tried or [])
    data = read_dataset(dataset)
    folder = out_folder or Path("studies") / f"{file_name(data.name)}-{find_method(method).name}"
    try:
        found = search(
            folder,
            data,
            method,
            space=space,
            trials=trials,
            storage=storage,
            jobs=jobs,
            seeds=seeds,
            settings=settings,
            values=values,
            prune_after=prune_after,
            seed=seed,
            metric=metric,
            most_loss=most_loss,
            say=err.print,
        )
    except KeyboardInterrupt:
        err.print(f"stopped; continue with the same call (what is done is in {folder})")
        sys.exit(128 + signal.SIGINT)
    if as_json:
        print_json(found.as_json())
    else:
        print_study(found)


def read_values(text: str) -> tuple[str, list[str]]:
    """`learning_rate=1e-3,1e-4` → the setting and its values."""
    name, equals, values = text.partition("=")
    if not equals or not name.strip():
        raise InputError(f"--try takes NAME=A,B,…, got {text!r}; write for example --try learning_rate=1e-3,1e-4")
    return name.strip(), [value.strip() for value in values.split(",") if value.strip()]


def print_study(found: TuneResult) -> None:
    """The best trials, what became of the others, and what to do next."""
    names, keys, goal = list(found.space), found.goal.keys, found.goal
    first = {trial.number: place for place, trial in enumerate(found.front)}
    allowed = {trial.number for trial in goal.allowed(found.trials)}

    def order(trial: Trial) -> tuple[Any, ...]:
        merit = goal.merits(trial.metrics)[0] if trial.metrics else trial.value or 0.0
        kept = trial.number in allowed
        return (first.get(trial.number, len(first)), trial.state != "complete", not kept, -merit, trial.number)

    ranked = sorted((trial for trial in found.trials if trial.state in ("complete", "pruned")), key=order)
    rows = [
        [
            trial.number,
            *(f"{value:.4f}" if value is not None else "" for value in _values(trial, keys)),
            *(f"{value:g}" if isinstance(value, float) else value for value in map(trial.settings.get, names)),
            len(trial.curve) or "",
            *attributes(trial, "seconds:.1f", "state"),
        ]
        for trial in ranked[: max(SHOWN, len(first) if len(goal.metrics) > 1 else 0)]
    ]
    title = f"Best trials of {found.method} on {found.dataset}, by {goal.in_words()}"
    print_table(title, ["trial", *keys, *names, "epochs", "seconds", "state"], rows)
    states = Counter(trial.state for trial in found.trials)
    out.print(
        f"{len(found.trials)} trials ({', '.join(f'{number} {state}' for state, number in states.items())}), "
        f"{found.seconds:,.0f} s of training; all in {found.folder / 'trials.jsonl'}"
    )
    if found.importance:
        shares = ", ".join(f"{name} {share:.0%}" for name, share in found.importance.items())
        out.print(f"importance of the settings: {shares}")
    if len(goal.metrics) > 1:
        numbers = ", ".join(str(trial.number) for trial in found.front)
        out.print(
            f"not dominated: {counted(len(found.front), 'trial', 'trials')} ({numbers}), best in {goal.metrics[0]} "
            f"first; kept in {found.folder / 'pareto'}"
        )
        out.print(
            f"next: dpaa train DATASET --config {found.folder / 'pareto'}/trial-{found.front[0].number}.toml --out RUN"
        )
        return
    best = " ".join(f"{name}={value}" for name, value in found.settings.items())
    out.print(f"best: trial {found.best.number}, {best}; kept in {found.folder / 'best.toml'}")
    if found.runs:
        recalls = [run.valid_recall for run in found.runs]
        mean = sum(recalls) / len(recalls)
        spread = f" ± {stdev(recalls):.4f}" if recalls[1:] else ""
        many = f"{len(recalls)} seeds" if recalls[1:] else f"seed {found.runs[0].seed}"
        out.print(f"trained with {many}: validation {goal.metrics[0]} {mean:.4f}{spread}")
        out.print(f"next: dpaa evaluate {found.runs[0].folder}")


def _values(trial: Trial, keys: list[str]) -> list[float | None]:
    """Of a finished trial every metric; of one that was pruned the recall@20 of its epochs, if that is shown."""
    if trial.metrics:
        return [trial.metrics.get(key) for key in keys]
    return [trial.value if key == "recall@20" else None for key in keys]
