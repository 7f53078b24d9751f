"""`dpaa tune`: hyperparameters chosen on validation; `dpaa benchmark`: many methods, tuned equally, in one table."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

import dpaa
from dpaa._text import counted, file_name
from dpaa.cli import options
from dpaa.cli.console import cells, err, out, print_json, print_notes, print_result, print_table, short
from dpaa.cli.interrupts import resumable
from dpaa.errors import InputError

if TYPE_CHECKING:
    from dpaa.tuning.tune import TuneResult


SPACES = "wide, lists or paper; or values of one; repeatable; default: wide."


def tune(
    dataset: options.DatasetArgument,
    method: options.Method,
    out_folder: Annotated[Path | None, Option("--out", help="Folder; default: studies/DATASET-METHOD.")] = None,
    spaces: Annotated[list[str] | None, Option("--space", metavar="NAME|NAME=A,B", help=SPACES)] = None,
    trials: Annotated[
        str | None, Option(metavar="N[,prune_after=EPOCHS]", help="Trials; default: 30, or the grid.")
    ] = None,
    assignments: options.Assignments = None,
    metric: Annotated[
        str, Option(help="Metric to optimise, such as recall@20/niche.", rich_help_panel="Search")
    ] = "recall@20",
    max_loss: Annotated[str | None, Option(metavar="METRIC=SHARE", help="Loss limit of a metric: ndcg@20=2%.")] = None,
    seeds: Annotated[int, Option(help="Seeds to train the best with, one run each.")] = 3,
    jobs: options.Jobs = 1,
    storage: Annotated[str | None, Option(help="URL of a database for several machines; default: a file.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Search a method's hyperparameters by validation recall@20 (or --metric), and train the best with several seeds.

    The space is wide (ranges, by TPE), lists (listed values, by TPE) or paper (its grids); NAME=A,B sets the values of
    one hyperparameter.  A trial below the median may be pruned after prune_after=30 epochs, 0 for never.  The test
    split is not used.  An existing study is resumed, however it was stopped; calls on several machines with the same
    --storage share the work (PostgreSQL; extra: sql).

    \b
    Example:
      dpaa tune data/coat --method dpaa --set layers=2 --trials 30 --jobs 2
      dpaa tune data/coat --method lightgcn --space paper --space \\
          learning_rate=1e-3,1e-4
      dpaa tune data/coat --method dpaa --metric recall@20/niche --max-loss \\
          ndcg@20=2%
      dpaa tune data/coat --method dpaa --trials 60 --jobs 8 --storage \\
          postgresql://me@db/sweeps
    """
    from dpaa.methods import find_method
    from dpaa.tuning.tune import tune as search

    fixed = options.read_hyperparameters(assignments)
    fixed.pop("method", None)
    named = [text for text in spaces or [] if "=" not in text] or ["wide"]
    values = dict(_read_values(text) for text in spaces or [] if "=" in text)
    counts = {} if trials is None else options.parse_values(trials, "trials", value=int, prune_after=int)
    data = dpaa.read_dataset(dataset)
    folder = out_folder or Path("studies") / f"{file_name(data.name)}-{find_method(method).name}"
    how: dict[str, Any] = {"space": " ".join(named), "trials": counts.pop("value", None), **counts}
    how |= {"seeds": seeds, "jobs": jobs, "metric": metric, "most_loss": max_loss, "storage": storage}
    with resumable(folder):
        result = search(folder, data, method, settings=fixed, values=values, say=err.print, **how)
    print_result(result, as_json, _print_study)


def _read_values(text: str) -> tuple[str, list[str]]:
    """`learning_rate=1e-3,1e-4` → the hyperparameter and its values."""
    name, _, values = text.partition("=")
    if not name.strip():
        raise InputError(f"--space takes NAME=A,B,…, got {text!r}; write for example learning_rate=1e-3,1e-4")
    return name.strip(), options.split_names(values)


def _print_study(result: TuneResult) -> None:
    """Print the best trials, the states of all, and the next command."""
    names = list(result.space)
    rows = []
    for trial in result.goal.ranked(result.trials)[:10]:
        settings = (short(trial.settings.get(name)) for name in names)
        rows.append([trial.number, f"{trial.value:.4f}", *settings, f"{trial.seconds:.1f}"])
    title = f"Best trials of {result.method} on {result.dataset}, by validation {result.goal.key}"
    print_table(title, ["trial", result.goal.key, *names, "seconds"], rows)
    states = ", ".join(f"{n} {state}" for state, n in Counter(trial.state for trial in result.trials).items())
    out.print(f"{len(result.trials)} trials ({states}), {result.seconds:,.0f} s; all in {result.folder}/trials.jsonl")
    best = " ".join(f"{name}={value}" for name, value in result.settings.items())
    out.print(f"best: trial {result.best.number}, {best}; kept in {result.folder}/best.toml")
    if result.runs:
        values = ", ".join(f"{run[f'valid_{result.goal.key}']:.4f}" for run in result.runs)
        seeds = counted(len(result.runs), "seed", "seeds")
        out.print(f"trained with {seeds}: validation {result.goal.key} {values}")
        out.print(f"next: dpaa {options.plugin_option(result.method)}evaluate {result.runs[0]['folder']}")


def benchmark(
    dataset: options.DatasetArgument,
    methods: Annotated[str, Option(metavar="A,B,…", help="Methods to compare; the first is the baseline.")],
    out_folder: Annotated[Path | None, Option("--out", help="Folder; default: benchmarks/DATASET.")] = None,
    trials: Annotated[int, Option(min=1, help="Trials per method, on validation.")] = 10,
    seeds: Annotated[int, Option(min=1, help="Seeds to train the best with.")] = 3,
    jobs: options.Jobs = 1,
    assignments: options.Assignments = None,
    metric: options.Metrics = None,
    k: options.K = 20,
    as_json: options.AsJson = False,
) -> None:
    """Benchmark methods on your data: tune each with the same number of trials, train it over seeds, compare.

    The test split is used once, after all hyperparameters are selected.  The table has the mean over seeds, and
    differences to the baseline with corrected p-values.  Repeating the call resumes; more methods or trials extend it.

    \b
    Example:
      dpaa benchmark data/coat --methods lightgcn,dpaa,ips,most-popular \\
          --trials 10 --jobs 2
    """
    from dpaa.tuning.benchmark import benchmark as compare_methods

    fixed = options.read_hyperparameters(assignments)
    data = dpaa.read_dataset(dataset)
    folder = out_folder or Path("benchmarks") / file_name(data.name)
    names = options.split_names(methods)
    how: dict[str, Any] = {"trials": trials, "seeds": seeds, "jobs": jobs, "k": k, "metrics": metric or ()}
    with resumable(folder):
        result = compare_methods(folder, data, names, settings=fixed, say=err.print, **how)
    if as_json:
        print_json(result.as_json())
        return
    rows, best = [], []
    for tuned in result.methods:
        numbers = [*cells(".4f", tuned["valid_recall"]), *cells(",.0f", tuned["seconds"])]
        rows.append([tuned["method"], tuned["trials"], f"{tuned['lookups']:,}", *numbers])
        chosen = " ".join(f"{name}={short(value)}" for name, value in tuned["settings"].items())
        best += [f"best of {tuned['method']}: {chosen}"] if chosen else []
    header = ["method", "trials", "look-ups", "validation recall@20", "seconds"]
    print_table(f"Tuning on {result.dataset}", header, rows)
    if any(row["lookups"] > row["trials"] for row in result.methods):
        out.print("look-ups: models compared on validation; more than trials if strengths are chosen after training")
    out.print("\n".join(best))
    comparison = result.comparison
    header, lines = comparison.cells(str, "{}", {mark: f" {mark}" for mark in "+−↑↓"})
    print_table(f"Test split of {result.dataset}, lists of {comparison.k}", header, lines)
    marks = f"+ better, − worse, ↑ higher, ↓ lower than {comparison.baseline}"
    out.print(f"{marks}, corrected p < 0.05 ({comparison.family})")
    out.print(comparison.protocol_in_words)
    print_notes([*comparison.notes, *result.notes])
    out.print(f"tables in {folder}; next: dpaa report {folder / 'comparison.json'} --out page.html")
