from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dpaa.data.pairs import Pairs
from dpaa.errors import InputError
from dpaa.graph.bipartite import BipartiteGraph, EdgeWeights
from tests.conftest import random_pairs
from tests.graph import reference


def test_repeated_pairs_weigh_as_often_as_they_occur() -> None:
    graph = BipartiteGraph.from_pairs(Pairs.of([0, 0, 1], [0, 1, 0], [3, 1, 2]), 2, 2)
    assert graph.user_degree.tolist() == [4, 2]
    assert graph.item_degree.tolist() == [5, 1]
    expected = np.array([3, 1, 2]) / np.sqrt([4 * 5, 4 * 1, 2 * 5])
    np.testing.assert_allclose(graph.symmetric_weights().to_user.numpy(), expected, rtol=1e-6)


@given(seed=st.integers(0, 9999), shape=st.tuples(st.integers(1, 7), st.integers(1, 7)))
def test_slots_are_the_dense_matrix_and_its_transpose(seed: int, shape: tuple[int, int]) -> None:
    """Row v holds what v hears; weights of both ways differ."""
    rng = np.random.default_rng(seed)
    pairs = random_pairs(rng, *shape)
    graph = BipartiteGraph.from_pairs(pairs, *shape)
    there, back = rng.random((2, len(pairs)))
    weights = EdgeWeights(torch.from_numpy(there), torch.from_numpy(back))
    expected = reference.adjacency(*shape, pairs.user, pairs.item, there, back)
    lengths = graph.indptr.diff().long()
    row = torch.arange(graph.n_nodes).repeat_interleave(lengths)
    for values, matrix in ((graph.slot_values(weights), expected), (graph.transposed_slot_values(weights), expected.T)):
        found = np.zeros_like(expected)
        found[row, graph.neighbours] = values
        np.testing.assert_array_equal(found, matrix)
    assert lengths.tolist() == (expected > 0).sum(axis=1).tolist()


def test_a_graph_that_32_bits_do_not_number_is_refused() -> None:
    with pytest.raises(InputError, match="32-bit indices"):
        BipartiteGraph.from_pairs(Pairs.of([0], [0]), 2**31 - 1, 1)
