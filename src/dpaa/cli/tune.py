"""`dpaa tune`: hyperparameters chosen on validation."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from dpaa._text import file_name
from dpaa.cli import options
from dpaa.cli.console import err, out, print_json, print_table, short
from dpaa.cli.interrupts import resumable
from dpaa.errors import InputError

if TYPE_CHECKING:
    from dpaa.tuning.tune import TuneResult


def tune(
    dataset: options.DatasetArgument,
    method: options.Method,
    out_folder: Annotated[Path | None, Option("--out", help="Folder; default: studies/DATASET-METHOD.")] = None,
    space: Annotated[str, Option(help="wide (ranges, by TPE), lists (by TPE) or paper (its grids).")] = "wide",
    trials: Annotated[int | None, Option(help="Number of trials in all; default: 30, or the whole grid.")] = None,
    tried: Annotated[list[str] | None, Option("--try", metavar="NAME=A,B,…", help="Values to search.")] = None,
    config: options.Config = None,
    assignments: options.Assignments = None,
    metric: Annotated[str, Option(help="What to search by on validation, such as recall@20/niche.")] = "recall@20",
    most_loss: Annotated[str | None, Option(help="Share of another metric to lose, such as ndcg@20=2%.")] = None,
    prune_after: Annotated[int, Option(help="Epochs before a trial below the median may be pruned; 0: never.")] = 30,
    seeds: Annotated[int, Option(help="Random seeds that the best are trained with, as runs.")] = 3,
    seed: options.Seed = 0,
    jobs: options.Jobs = 1,
    storage: Annotated[str | None, Option(help="URL of a database for several machines; default: a file.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Search the hyperparameters of a method by validation recall@20 (or --metric), and train the best over seeds.

    The test split is not opened.  An existing study is resumed, however it was stopped; calls on other machines with
    the same --storage share the work (PostgreSQL; extra: sql).

    \b
    Example:
      dpaa tune data/coat --method dpaa --set layers=2 --trials 30 --jobs 2
      dpaa tune data/coat --method lightgcn --space paper --try learning_rate=1e-3,1e-4
      dpaa tune data/coat --method dpaa --metric recall@20/niche --most-loss ndcg@20=2%
      dpaa tune data/coat --method dpaa --trials 60 --jobs 8 --storage postgresql://me@db/sweeps
    """
    from dpaa.data.dataset import read_dataset
    from dpaa.methods import find_method
    from dpaa.tuning.tune import tune as search

    fixed = options.read_hyperparameters(assignments, config)
    fixed.pop("method", None)
    values = dict(read_values(one) for one in tried or [])
    data = read_dataset(dataset)
    folder = out_folder or Path("studies") / f"{file_name(data.name)}-{find_method(method).name}"
    how: dict[str, Any] = {"space": space, "trials": trials, "seeds": seeds, "seed": seed, "jobs": jobs}
    how |= {"metric": metric, "most_loss": most_loss, "prune_after": prune_after, "storage": storage}
    with resumable(folder):
        result = search(folder, data, method, settings=fixed, values=values, say=err.print, **how)
    if as_json:
        print_json(result.as_json())
    else:
        print_study(result)


def read_values(text: str) -> tuple[str, list[str]]:
    """`learning_rate=1e-3,1e-4` → the hyperparameter and its values."""
    name, equals, values = text.partition("=")
    if not equals or not name.strip():
        raise InputError(f"--try takes NAME=A,B,…, got {text!r}; write for example --try learning_rate=1e-3,1e-4")
    return name.strip(), [value.strip() for value in values.split(",") if value.strip()]


def print_study(result: TuneResult) -> None:
    """The best trials, what became of the others, and what to do next."""
    names = list(result.space)
    rows = [
        [
            trial.number,
            f"{trial.value:.4f}",
            *(short(trial.settings.get(name)) for name in names),
            f"{trial.seconds:.1f}",
        ]
        for trial in result.goal.ranked(result.trials)[:10]
    ]
    title = f"Best trials of {result.method} on {result.dataset}, by validation {result.goal.key}"
    print_table(title, ["trial", result.goal.key, *names, "seconds"], rows)
    states = ", ".join(f"{n} {state}" for state, n in Counter(trial.state for trial in result.trials).items())
    out.print(f"{len(result.trials)} trials ({states}), {result.seconds:,.0f} s; all in {result.folder}/trials.jsonl")
    best = " ".join(f"{name}={value}" for name, value in result.settings.items())
    out.print(f"best: trial {result.best.number}, {best}; kept in {result.folder}/best.toml")
    if result.runs:
        values = ", ".join(f"{run[f'valid_{result.goal.key}']:.4f}" for run in result.runs)
        out.print(f"trained with {len(result.runs)} seeds: validation {result.goal.key} {values}")
        out.print(f"next: dpaa evaluate {result.runs[0]['folder']}")
