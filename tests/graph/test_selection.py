from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dpaa.graph.bipartite import BipartiteGraph
from dpaa.graph.kernels import KERNELS
from dpaa.graph.propagation import Selection
from tests.conftest import random_pairs


def some_nodes(seed: int) -> tuple[BipartiteGraph, Selection, torch.Tensor]:
    rng = np.random.default_rng(seed)
    graph = BipartiteGraph.from_pairs(random_pairs(rng, 9, 7, 0.4), 9, 7)
    nodes = torch.from_numpy(rng.integers(0, graph.n_nodes, rng.integers(1, 30)))
    return graph, Selection(graph, nodes, round_to=1, whole_from=2.0), nodes


@given(seed=st.integers(0, 10_000), round_to=st.integers(2, 40))
def test_a_round_number_of_nodes_holds_those_asked_for(seed: int, round_to: int) -> None:
    graph, exact, nodes = some_nodes(seed)
    selection = Selection(graph, nodes, round_to, whole_from=2.0)
    assert len(selection) == min(-(-len(exact) // round_to) * round_to, graph.n_nodes)
    assert torch.equal(selection.nodes, selection.nodes.unique())
    assert torch.equal(selection.nodes[selection.index[nodes].long()], nodes)


@pytest.mark.parametrize("kernel", sorted(KERNELS))
@given(seed=st.integers(0, 10_000), n_tiles=st.sampled_from([0, 1, 2, 8, 1000]))
def test_rows_are_those_of_the_whole_product_whether_cut_or_not(kernel: str, seed: int, n_tiles: int) -> None:
    graph, selection, _ = some_nodes(seed)
    multiply = KERNELS[kernel]
    values, table = torch.randn(2 * graph.n_edges), torch.randn(graph.n_nodes, 3)
    whole = multiply(graph.indptr, graph.neighbours, values, table)
    found = torch.full((len(selection), 3), torch.nan)
    for block in selection.rows(n_tiles):
        rows = multiply(block.indptr, block.neighbours, block.values(values), table)
        found[block.part] = rows if block.wanted is None else rows[block.wanted]
    torch.testing.assert_close(found, whole[selection.nodes])
