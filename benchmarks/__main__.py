"""`make bench`: print the ratio tables, and write them to RESULTS.md with `--write`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import bench_evaluation, bench_sharing, bench_training
from benchmarks.graphs import SIZES, SMALL, Cases
from benchmarks.timing import machine, markdown

WHY = """
## Why the Yahoo-size step with 64 columns is above 1.5 floors

The shares are in the profile above: products and Adam, the floor, are more than half, though the last product is made
for the batch's rows alone and the first transposed one reads a table of those rows. The rest is spread thin over some
hundreds of small operations on 2,800 to 6,100 rows: margins, L2 and their gradient, gathering and scaling rows, finding
distinct rows, cutting the matrix, adding rows into the gradient. On graphs with more edges per node it disappears
behind the products. Tried without gain: leaving slots of absent nodes out of the first transposed product (finding them
costs 0.3 ms; with 64 columns they cost 0.2 ms, with 256 columns 0.9 of 27 ms), one tile of 64 columns instead of two of
32 (5 % for one thread, but nothing to share between two).

## Why wide tables take more memory than allowed

The allowance has 300 MB for all but tables and graph; the table of memory says what Python and its libraries take of
that before anything is read, torch most of it. Between two steps the tables, the graph, the sampler and an epoch's
triples are held. A step takes the batch's rows and their gradients, a tile's layers and its gradient, and leaves holes
in the C library's heap.

## Why APDA costs more than three LightGCN steps

Its weights follow the embeddings, so a layer needs, by definition, three sparse products (LightGCN two), three inner
products along all edges (LightGCN none) and two whole tables of random numbers. On the KuaiRec-size graph (D 64, four
layers) the 12 sparse products (8 to 9 ms each), 12 edge products (10 to 12 ms) and 8 tables (2 ms) alone are about 3.3
LightGCN steps; the gradient is written by hand and adds little to that. Tried without gain: tiles of 32 columns and
blocks of items for the edge products, other kernels for them, cache-sized blocks of rows for the element-wise work.
"""


TRAINING = [
    "case",
    "floor per step",
    "ours per step",
    "ours per epoch",
    "ours / floor",
    "usual / ours",
    "PyG EdgeIndex / ours",
]
EVALUATION = ["case", "product and top-k alone", "evaluation", "ratio", "sampling an epoch", "recommend"]
PROFILE = ["case", *bench_training.OPERATIONS, "the rest", "operations per step"]
MEMORY = ["case", "Python, libraries", "held between steps", "peak", "allowed (tables × 5 + graph × 2 + 300 MB)"]
PARTS: dict[str, tuple[str, list[str], Callable[[Cases], list[list[str]]]]] = {
    "training": ("Training step, one thread", TRAINING, bench_training.run),
    "profile": ("Where a step goes, by torch's profiler, one thread", PROFILE, bench_training.run_profile),
    "dpaa": ("DPAA epoch / LightGCN epoch", ["case", "refresh", "ratio"], bench_training.run_dpaa),
    "methods": ("Step of a method / step of LightGCN", ["case", "per step", "ratio"], bench_training.run_methods),
    "evaluation": ("Evaluation of all users, sampling, recommendations", EVALUATION, bench_evaluation.run),
    "sharing": ("Sharing the machine", ["case", "alone", "shared", "ratio"], bench_sharing.run),
    "memory": ("Peak memory of training", MEMORY, bench_sharing.run_memory),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS), help="only these tables")
    parser.add_argument("--graph", nargs="+", choices=[*SMALL, *SIZES], default=[], help="only these graphs")
    parser.add_argument("--size", nargs="+", type=int, default=[64, 256], help="only these embedding sizes")
    parser.add_argument("--write", action="store_true", help="write RESULTS.md (all tables)")
    asked = parser.parse_args()
    wanted = Cases(tuple(asked.graph), tuple(asked.size))
    if asked.write and (wanted != Cases() or set(asked.part) != set(PARTS)):
        parser.error("--write is for all tables together")
    text = f"# Benchmarks\n\nMade by `python -m benchmarks --write` on {datetime.now(UTC):%Y-%m-%d}: {machine()}.\n"
    text += "Ratios are within one run; targets in brackets. Equality of loss and gradient is checked before timing.\n"
    text += "Times are the processor's, but for the machine that is shared.\n"
    for part in asked.part:
        title, header, run = PARTS[part]
        text += f"\n## {title}\n\n{markdown(header, run(wanted))}"
    text += WHY
    print(text)
    if asked.write:
        (Path(__file__).parent / "RESULTS.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
