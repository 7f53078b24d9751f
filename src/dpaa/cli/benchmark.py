"""`dpaa benchmark`: many methods on a dataset of your own, tuned equally, in one table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Option

from dpaa._text import file_name
from dpaa.cli import options
from dpaa.cli.console import cells, err, out, print_json, print_notes, print_table, short
from dpaa.cli.interrupts import resumable


def benchmark(
    dataset: options.DatasetArgument,
    methods: Annotated[str, Option(metavar="A,B,…", help="Methods to compare; the first is the baseline.")],
    out_folder: Annotated[Path | None, Option("--out", help="Folder; default: benchmarks/DATASET.")] = None,
    trials: Annotated[int, Option(min=1, help="Hyperparameters tried for each method, on validation.")] = 10,
    seeds: Annotated[int, Option(min=1, help="Random seeds that the best are trained with.")] = 3,
    seed: options.Seed = 0,
    jobs: options.Jobs = 1,
    assignments: options.Assignments = None,
    metric: options.Metrics = None,
    k: options.K = 20,
    as_json: options.AsJson = False,
) -> None:
    """Benchmark methods on your data: every one tuned with as many trials on validation, trained over seeds, compared.

    The test split is opened once, when all hyperparameters are chosen.  The table has the mean over seeds, and
    differences to the baseline with corrected p-values.  The same call resumes; more methods or trials add to it.

    \b
    Example:
      dpaa benchmark data/coat --methods lightgcn,dpaa,ips,most-popular --trials 10 --jobs 2
    """
    from dpaa.data.dataset import read_dataset
    from dpaa.tuning.benchmark import benchmark as compare_methods

    fixed = options.read_hyperparameters(assignments)
    data = read_dataset(dataset)
    folder = out_folder or Path("benchmarks") / file_name(data.name)
    names = options.split_names(methods)
    how: dict[str, Any] = {
        "trials": trials,
        "seeds": seeds,
        "jobs": jobs,
        "k": k,
        "seed": seed,
        "metrics": metric or (),
    }
    with resumable(folder):
        result = compare_methods(folder, data, names, settings=fixed, say=err.print, **how)
    if as_json:
        print_json(result.as_json())
        return
    rows, best = [], []
    for one in result.methods:
        numbers = [*cells(".4f", one["valid_recall"]), *cells(",.0f", one["seconds"])]
        rows.append([one["method"], one["trials"], f"{one['lookups']:,}", *numbers])
        chosen = " ".join(f"{name}={short(value)}" for name, value in one["settings"].items())
        best += [f"best of {one['method']}: {chosen}"] if chosen else []
    header = ["method", "trials", "look-ups", "validation recall@20", "seconds"]
    print_table(f"Tuning on {result.dataset}", header, rows)
    if any(one["lookups"] > one["trials"] for one in result.methods):
        out.print("look-ups: what validation chose from; more than trials where strengths are chosen after training")
    out.print("\n".join(best))
    comparison = result.comparison
    header, lines = comparison.cells(str, "{}", {mark: f" {mark}" for mark in "+−↑↓"})
    print_table(f"Test split of {result.dataset}, lists of {comparison.k}", header, lines)
    marks = f"+ better, − worse, ↑ higher, ↓ lower than {comparison.baseline}"
    out.print(f"{marks}, corrected p < 0.05 ({comparison.family})")
    out.print(comparison.protocol_in_words)
    print_notes([*comparison.notes, *result.notes])
    out.print(f"tables in {folder}; next: dpaa report {folder / 'comparison.json'} --out page.html")
