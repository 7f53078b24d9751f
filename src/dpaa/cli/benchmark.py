"""`dpaa benchmark`: many methods on a dataset of your own, tuned equally, in one table."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from dpaa._text import file_name
from dpaa.cli import options
from dpaa.cli.console import cells, err, out, print_json, print_notes, print_table


def benchmark(
    dataset: options.DatasetArgument,
    methods: Annotated[str, Option(metavar="A,B,…", help="Methods to compare; the first is the baseline.")],
    out_folder: Annotated[Path | None, Option("--out", help="Folder; default: benchmarks/DATASET.")] = None,
    trials: Annotated[int, Option(min=1, help="Hyperparameters tried for each method, on validation.")] = 10,
    seeds: Annotated[int, Option(min=1, help="Random seeds that the best are trained with.")] = 3,
    seed: Annotated[int, Option(min=0, help="Random seed of the searches and of their trials.")] = 0,
    jobs: Annotated[int, Option(min=1, help="Trials at a time, one core each.")] = 1,
    assignments: options.Assignments = None,
    baseline: Annotated[str | None, Option(help="Method to compare the others with; default: the first.")] = None,
    metric: Annotated[list[str] | None, Option(help="Metric to compare, such as ndcg; repeatable.")] = None,
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
    from dpaa.cli.train import read_settings
    from dpaa.data.dataset import read_dataset
    from dpaa.tuning.benchmark import benchmark as compare_methods

    fixed = read_settings(None, assignments or [], None)
    data = read_dataset(dataset)
    folder = out_folder or Path("benchmarks") / file_name(data.name)
    names = [name.strip() for name in methods.split(",") if name.strip()]
    how: dict[str, Any] = {"trials": trials, "seeds": seeds, "jobs": jobs, "k": k, "seed": seed, "baseline": baseline}
    try:
        result = compare_methods(folder, data, names, metrics=metric or (), settings=fixed, say=err.print, **how)
    except KeyboardInterrupt:
        err.print(f"stopped; continue with the same call (what is done is in {folder})")
        sys.exit(128 + signal.SIGINT)
    if as_json:
        print_json(result.as_json())
        return
    rows = []
    for one in result.methods:
        best = " ".join(
            f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in one["settings"].items()
        )
        rows.append(
            [one["method"], one["trials"], *cells(".4f", one["valid_recall"]), *cells(",.0f", one["seconds"]), best]
        )
    print_table(f"Tuning on {result.dataset}", ["method", "trials", "validation recall@20", "seconds", "best"], rows)
    comparison = result.comparison
    header, lines = comparison.cells(str, "{}", {mark: f" {mark}" for mark in "+−↑↓"})
    print_table(f"Test split of {result.dataset}, lists of {comparison.k}", header, lines)
    out.print(
        f"+ better, − worse, ↑ higher, ↓ lower than {comparison.baseline}, corrected p < 0.05 ({comparison.family})"
    )
    out.print(comparison.protocol_in_words)
    print_notes(result.notes)
    out.print(f"tables in {folder}; next: dpaa report {folder / 'comparison.json'} --out page.html")
