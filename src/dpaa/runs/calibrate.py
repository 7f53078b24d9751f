"""Time the sparse kernels on the real matrix and keep the fastest."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from dpaa.graph.propagation import TILE_COLUMNS, Propagation, TiledTable, Workers
from dpaa.kernels.machine import computing
from dpaa.kernels.spmm import KERNELS
from dpaa.methods.backbone import GraphMethod
from dpaa.methods.base import Method

REPEATS = 5


def calibrated(method: Method, say: Callable[[str], None] = lambda _: None) -> Method:
    """The method with the kernel that propagates fastest here; others are returned as they are."""
    if not isinstance(method, GraphMethod):
        say(f"nothing to calibrate: {method.name} does not propagate")
        return method
    seconds = {kernel: _seconds(method, kernel) for kernel in KERNELS}
    best = min(seconds, key=lambda kernel: seconds[kernel])
    say(
        "calibration: "
        + ", ".join(f"{kernel} {1e3 * value:.2f} ms" for kernel, value in seconds.items())
        + f"; {best} it is"
    )
    return type(method)(method.graph, method.settings.model_copy(update={"kernel": best}))


def _seconds(method: GraphMethod, kernel: str) -> float:
    """The quickest of a few forward passes."""
    settings = method.settings
    with computing():
        table = TiledTable.from_dense(
            torch.zeros(method.graph.n_nodes, settings.embedding_size, device=method.device), TILE_COLUMNS[kernel]
        )
        found = table.empty_like()
        propagation = Propagation(method.graph, settings.layers, kernel, Workers(method.compute.threads))
        propagation.set_weights([method.graph.symmetric_weights()] * settings.layers)
        times = []
        for _ in range(REPEATS):
            began = time.perf_counter()
            propagation.forward(table, found)
            times.append(time.perf_counter() - began)
    return min(times)
