from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from dpaa.graph import kernels as row_blocks
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.graph.kernels import KERNELS, in_row_blocks
from dpaa.graph.propagation import Propagation, Selection, TiledTable, Workers
from tests.conftest import random_pairs


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_blocks, "LEAST_SLOTS", 20)


@pytest.mark.parametrize("kernel", ["bag", "csr"])
@pytest.mark.parametrize("most", [2, 3, 7])
def test_blocks_of_rows_give_the_same_bits(kernel: str, most: int) -> None:
    """Users and items without neighbours among them, and one item that has more slots than a block should."""
    pairs = random_pairs(np.random.default_rng(4), 40, 8, 0.3)
    graph = BipartiteGraph.from_pairs(pairs, 45, 12)
    values = graph.slot_values(graph.symmetric_weights())
    table = torch.randn(graph.n_nodes, 32, generator=torch.Generator().manual_seed(0))
    seen = []

    def counted(*arrays: torch.Tensor) -> torch.Tensor:
        seen.append(len(arrays[0]) - 1)
        return KERNELS[kernel](*arrays)

    with ThreadPoolExecutor(2) as pool:
        found = in_row_blocks(counted, pool, most)(graph.indptr, graph.neighbours, values, table)
    assert torch.equal(found, KERNELS[kernel](graph.indptr, graph.neighbours, values, table))
    assert len(seen) == most
    assert sum(seen) == graph.n_nodes


def test_more_threads_than_tiles_change_no_bit_of_layers_and_gradients() -> None:
    graph = BipartiteGraph.from_pairs(random_pairs(np.random.default_rng(5), 60, 40, 0.1), 60, 40)
    table = TiledTable.from_dense(torch.randn(graph.n_nodes, 48, generator=torch.Generator().manual_seed(1)), 32)
    selection = Selection(graph, torch.arange(0, 100, 7), round_to=1)
    found = []
    for workers in (Workers(1), Workers(8, len(table.tiles))):
        propagation = Propagation(graph, 3, "bag", workers, residual=0.2)
        propagation.set_weights([graph.symmetric_weights()] * 3)
        readout, ego = propagation.rows_of(table, selection)
        gradient = propagation.gradient_tile(selection, readout[:, :32].contiguous(), ego[0])
        found.append((readout, gradient, *propagation.dense_readout(table)))
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))
