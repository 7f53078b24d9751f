"""What a training step of each method costs, as a multiple of LightGCN's.

    python -m scripts.method_cost [--users 6000] [--items 4000] [--out benchmarks/METHODS.md] [NAME …]
    python -m scripts.method_cost --profile 3 [--out benchmarks/METHOD_PROFILES.md] [NAME …]

A made graph with a long tail; forward, loss, backward and Adam, one thread, steps of all methods in turn.  What is done
once an epoch (`refresh`) is in the second column, spread over the epoch's steps.  With `--profile N`, N steps of each
method under torch's profiler instead: which operations the time goes to.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from benchmarks.timing import machine, ratio, turns

from dpaa.data.pairs import Pairs
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods import METHODS
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.base import Method
from dpaa.methods.rows import Batch
from dpaa.reproduction.tables import markdown
from dpaa.training.optimizer import TiledAdam

SETTINGS = {"embedding_size": 64, "layers": 3, "threads": 1}
PLAIN = "lightgcn"
SHOWN = 5
"""Operations told of each method."""


def graph_of(n_users: int, n_items: int) -> BipartiteGraph:
    """Forty items a user, by a power law."""
    rng = np.random.default_rng(0)
    items = (rng.random(40 * n_users) ** 2 * n_items).astype(np.int32)
    return BipartiteGraph.from_pairs(Pairs.of(np.repeat(np.arange(n_users), 40), items), n_users, n_items)


class Steps:
    """A method in training, a step at a call."""

    def __init__(self, name: str, graph: BipartiteGraph) -> None:
        kind = METHODS[name]
        method = kind(graph, kind.settings_type(**SETTINGS))
        assert isinstance(method, GraphMethod)
        self.method = method
        if method.needs_randomised:
            rng = np.random.default_rng(1)
            users, items = (rng.integers(0, n, graph.n_edges // 20) for n in (graph.n_users, graph.n_items))
            method.take_randomised(Pairs.of(users, items))
        method.start()
        self._adam = TiledAdam(method)
        began = time.process_time()
        method.refresh(30)  # late enough for what only begins after some epochs
        self.refresh_seconds = time.process_time() - began
        self._batches: Iterator[Batch] = itertools.cycle(list(itertools.islice(method.batches(30), 8)))

    def __call__(self) -> None:
        """Forward, loss, backward, update."""
        batch = next(self._batches)
        rows = self.method.forward(batch)
        self.method.loss(batch, rows).backward()  # type: ignore[no-untyped-call]
        self._adam.step(rows, self.method.learning_rate)


def profiled(names: Sequence[str], graph: BipartiteGraph, n_steps: int) -> str:
    """A page with the operations that take most of each method's steps, by their own time."""
    rows = []
    for name in names:
        step = Steps(name, graph)
        step()  # what is done once is nobody's time
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as seen:
            for _ in range(n_steps):
                step()
        averages = seen.key_averages()
        whole = sum(one.self_cpu_time_total for one in averages)
        most = sorted(averages, key=lambda one: -one.self_cpu_time_total)[:SHOWN]
        told = ", ".join(
            f"{one.key.removeprefix('aten::')} {100 * one.self_cpu_time_total / whole:.0f} %" for one in most
        )
        rows.append([name, told])
        print(*rows[-1], flush=True)
    return f"""# Where a training step of each method goes

{graph.n_users:,} users × {graph.n_items:,} items, {graph.n_edges:,} pairs, 64 columns, 3 layers, batches of 2,048,
one thread; {machine()}.

Shares of torch's operations in their own time, over {n_steps} steps under its profiler; `mm` and `addmm_` are products
of matrices, `_embedding_bag…` those with the graph. The profiler counts wall time: on a busy machine an operation that
was interrupted looks dearer than it is, so small shares say little.

Made by `python -m scripts.method_cost --profile {n_steps} --users {graph.n_users} --items {graph.n_items}`.

{markdown(["method", "operations"], rows)}"""


def main() -> None:
    """Measure, print the table, and write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--users", type=int, default=6_000)
    parser.add_argument("--items", type=int, default=4_000)
    parser.add_argument("--repeats", type=int, default=8)
    parser.add_argument("--profile", type=int, default=0, metavar="N", help="steps to profile instead of timing")
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    graph = graph_of(chosen.users, chosen.items)
    trained = [name for name in METHODS.built_in if issubclass(METHODS[name], GraphMethod)]
    names = chosen.names or [
        name for name in trained if not name.startswith("dpaa") and METHODS[name].fit is Method.fit
    ]  # those want a model trained first
    names = [PLAIN, *(name for name in names if name != PLAIN)]
    if chosen.profile:
        page = profiled(names, graph, chosen.profile)
        print(page)
        if chosen.out:
            chosen.out.write_text(page, encoding="utf-8")
        return
    steps = {name: Steps(name, graph) for name in names}
    found = turns(dict(steps), warm_ups=1, repeats=chosen.repeats)
    rows = []
    for name in names:
        per_step = steps[name].refresh_seconds / steps[name].method.compute.n_batches
        whole = [one + per_step for one in found[name]]
        rows.append(
            [
                name,
                f"{1e3 * min(found[name]):.0f}",
                f"{ratio(found[name], found[PLAIN]):.2f}",
                f"{ratio(whole, found[PLAIN]):.2f}",
            ]
        )
    page = f"""# A training step of each method

{graph.n_users:,} users × {graph.n_items:,} items, {graph.n_edges:,} pairs, 64 columns, 3 layers, batches of 2,048,
one thread; {machine()}.

Made by `python -m scripts.method_cost --users {chosen.users} --items {chosen.items}`.

{markdown(["method", "ms (quickest)", "times LightGCN", "with what is done once an epoch"], rows)}"""
    print(page)
    if chosen.out:
        chosen.out.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
