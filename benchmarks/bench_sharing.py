"""Two processes that share the machine: neither may collapse.  And the peak memory of a training."""

from __future__ import annotations

import itertools
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.bench_training import stepper
from benchmarks.graphs import SIZES, Cases, graph_of, zipf_pairs
from benchmarks.timing import held_megabytes, peak_megabytes, take_turns
from dpaa._machine import computing, give_back_memory
from dpaa.data.pairs import Pairs
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods.base import attach, fitted
from dpaa.methods.lightgcn import LightGCN
from dpaa.methods.tables import Tables
from dpaa.training.trainer import MONITOR, Trainer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dpaa.methods.tables import Batch

WORK = "from benchmarks.bench_sharing import milliseconds; print(milliseconds())"


def milliseconds(threads: int = 2, repeats: int = 30) -> float:
    """A training step on the Yahoo-size graph with all cores."""
    graph, layers = graph_of("Yahoo-size")
    method = attach(LightGCN(embedding_size=64, layers=layers, threads=threads), graph)
    Tables.start(method)
    trainer, batches = stepper(method)
    with computing():
        work = {"step": lambda: trainer._step(next(batches), 1e-3)}
        return 1e3 * take_turns(work, repeats=repeats, clock=time.perf_counter)["step"]


def run(wanted: Cases) -> list[list[str]]:
    """Alone, and beside another of its kind."""
    del wanted
    alone = float(subprocess.run([sys.executable, "-c", WORK], capture_output=True, check=True, text=True).stdout)
    both = [subprocess.Popen([sys.executable, "-c", WORK], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    shared = max(float(process.communicate()[0]) for process in both)
    return [["two processes, 2 threads each", f"{alone:.1f} ms", f"{shared:.1f} ms", f"{shared / alone:.2f} (≤ 2.2)"]]


def run_memory(wanted: Cases) -> list[list[str]]:
    """A row for every case."""
    return [peak_memory(name, size) for name in wanted.graphs(SIZES) for size in wanted.sizes]


def peak_memory(name: str, size: int) -> list[str]:
    """Peak memory of a short training against `tables × 5 + graph × 2 + 300 MB`, in a process of its own.

    The pairs are drawn in this process: drawing them takes more memory than training on them.
    """
    n_users, n_items, n_pairs, layers = SIZES[name]
    pairs = zipf_pairs(n_users, n_items, n_pairs)
    with tempfile.TemporaryDirectory() as place:
        file = str(Path(place) / "pairs.npz")
        np.savez(file, user=pairs.user, item=pairs.item)
        numbers = f"{n_users}, {n_items}, {layers}, {size}"
        code = f"from benchmarks.bench_sharing import print_peak; print_peak({file!r}, {numbers})"
        told = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout
        imports, held, peak = (float(number) for number in told.split())
    tables, graph = 4 * size * (n_users + n_items) / 1e6, 2 * n_pairs * 8 / 1e6
    allowed = 5 * tables + 2 * graph + 300
    return [f"{name}, D {size}", *(f"{one:.0f} MB" for one in (imports, held, peak, allowed))]


class ShortEpochs(LightGCN):
    """Forty batches an epoch."""

    held: float = fitted()
    """Megabytes between two steps, without what steps have left free."""

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The first of the real ones."""
        yield from itertools.islice(super().batches(epoch, start), 40)
        if epoch == 2:  # the end of the first is as it is in training
            give_back_memory()
            self.held = held_megabytes()


def print_peak(file: str, n_users: int, n_items: int, layers: int, size: int) -> None:
    """Train two short epochs, the way to the final vectors included.

    Prints the memory of Python and its libraries, what is held between two steps, and the peak.
    """
    imports = held_megabytes()
    with np.load(file) as arrays:
        pairs = Pairs(arrays["user"], arrays["item"])
    graph = BipartiteGraph.from_pairs(pairs, n_users, n_items)
    method = attach(ShortEpochs(embedding_size=size, layers=layers, threads=1, epochs=2), graph)
    Trainer(method, validate=lambda _: {MONITOR: 0.0}).run()
    print(imports, method.held, peak_megabytes())
