"""`dpaa benchmark`: many methods on a dataset of your own, tuned equally, in one table."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from dpaa._text import file_name
from dpaa.cli import options
from dpaa.cli.console import cells, err, out, print_json, print_notes, print_table

if TYPE_CHECKING:
    from dpaa.tuning.benchmark import Benchmark


def benchmark(
    dataset: options.DatasetArgument,
    methods: Annotated[
        str, Option("--methods", metavar="A,B,…", help="Methods to compare; the first is the baseline.")
    ],
    out_folder: Annotated[
        Path | None, Option("--out", help="Folder; default: benchmarks/DATASET.  An existing one is gone on with.")
    ] = None,
    trials: Annotated[int, Option(min=1, help="Settings tried for each method, on validation.")] = 10,
    seeds: Annotated[int, Option(min=1, help="Random seeds that the best settings are trained with.")] = 3,
    seed: Annotated[int, Option(min=0, help="Random seed of the searches and of their trials.")] = 0,
    jobs: Annotated[int, Option(min=1, help="Trials at a time, one core each.")] = 1,
    assignments: options.Assignments = None,
    baseline: Annotated[str | None, Option(help="Method that the others are held against; default: the first.")] = None,
    metric: Annotated[list[str] | None, Option(help="Metric to compare, such as ndcg; repeatable.")] = None,
    k: options.K = 20,
    as_json: options.AsJson = False,
) -> None:
    """Benchmark methods on your data: every one tuned with as many trials on validation, trained over seeds, compared.

    The test split is opened once, when all settings are chosen.  The table has the mean over seeds, and differences to
    the baseline with corrected p-values.  Stopped, it goes on with the same call; more methods or trials add to it.

    \b
    Example:
      dpaa benchmark data/coat --methods lightgcn,dpaa,ips,most-popular --trials 10 --jobs 2
    """
    from dpaa.cli.train import read_settings
    from dpaa.data.dataset import read_dataset
    from dpaa.tuning.benchmark import benchmark as compare_methods

    settings = read_settings(None, assignments or [], None)
    data = read_dataset(dataset)
    folder = out_folder or Path("benchmarks") / file_name(data.name)
    try:
        found = compare_methods(
            folder,
            data,
            [name.strip() for name in methods.split(",") if name.strip()],
            trials=trials,
            seeds=seeds,
            jobs=jobs,
            k=k,
            baseline=baseline,
            metrics=tuple(metric or ()),
            settings=settings,
            seed=seed,
            say=err.print,
        )
    except KeyboardInterrupt:
        err.print(f"stopped; continue with the same call (what is done is in {folder})")
        sys.exit(128 + signal.SIGINT)
    if as_json:
        print_json(found.as_json())
    else:
        print_benchmark(found)


def print_benchmark(found: Benchmark) -> None:
    """How each was tuned, then the table of the test split."""
    rows = [
        [
            one.method,
            one.trials or "none needed",
            *cells(".4f", one.valid_recall),
            *cells(",.0f", one.seconds if one.trials else None),
            " ".join(f"{name}={_short(value)}" for name, value in one.settings.items()) or "-",
        ]
        for one in found.methods
    ]
    header = ["method", "trials", "validation recall@20", "seconds", "best settings"]
    print_table(f"Tuning on {found.dataset}", header, rows)
    names, lines = found.comparison.cells(str, "{}", {mark: f" {mark}" for mark in "+−↑↓"})
    print_table(f"Test split of {found.dataset}, lists of {found.comparison.k}", names, lines)
    out.print(
        f"+ better, − worse, ↑ higher, ↓ lower than {found.comparison.baseline}, corrected p below .05 "
        f"({found.comparison.family})"
    )
    out.print(found.comparison.protocol_in_words)
    print_notes(found.notes)
    out.print(
        f"tables in {found.folder} (table.md, table.tex, table.csv); "
        f"next: dpaa report {found.folder / 'comparison.json'} --out page.html"
    )


def _short(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
