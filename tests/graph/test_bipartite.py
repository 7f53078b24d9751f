import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dpaa.data.pairs import Pairs
from dpaa.errors import InputError
from dpaa.graph import BipartiteGraph, EdgeWeights, TiledTable, edge_cosines
from dpaa.graph.cooccurrence import LARGEST_BITMAP, KnownPairs, Lists, in_common
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
    for values, matrix in ((graph.slot_values(weights), expected), (graph.slot_values(weights.transposed), expected.T)):
        found = np.zeros_like(expected)
        found[row, graph.neighbours] = values
        np.testing.assert_array_equal(found, matrix)
    assert lengths.tolist() == (expected > 0).sum(axis=1).tolist()


def test_a_graph_that_32_bits_do_not_number_is_refused() -> None:
    with pytest.raises(InputError, match="32-bit indices"):
        BipartiteGraph.from_pairs(Pairs.of([0], [0]), 2**31 - 1, 1)


def test_cosines_by_hand() -> None:
    graph = BipartiteGraph.from_pairs(Pairs.of([0, 0, 1, 1], [0, 1, 0, 2]), 2, 3)
    vectors = torch.tensor([[1.0, 0], [1, 1], [2, 0], [0, 3], [0, 0]])
    found = edge_cosines(graph, TiledTable.from_dense(vectors, 1))
    np.testing.assert_allclose(found, [1, 0, math.sqrt(0.5), 0], atol=1e-6)


@given(seed=st.integers(0, 9999), columns=st.integers(1, 40), scale=st.sampled_from([1e-15, 1.0, 1e15]))
def test_cosines_lie_in_their_range_and_know_no_length(seed: int, columns: int, scale: float) -> None:
    graph = BipartiteGraph.from_pairs(random_pairs(np.random.default_rng(seed), 6, 5), 6, 5)
    vectors = torch.randn(11, columns, generator=torch.Generator().manual_seed(seed))
    found = edge_cosines(graph, TiledTable.from_dense(vectors, 16))
    assert (found.abs() <= 1).all()
    pairs = vectors[graph.edge_user], vectors[graph.edge_item + graph.n_users]
    torch.testing.assert_close(found, torch.cosine_similarity(*pairs), rtol=1e-4, atol=1e-5)
    scaled = edge_cosines(graph, TiledTable.from_dense(vectors * scale, 16))
    torch.testing.assert_close(scaled, found, rtol=1e-4, atol=1e-5)


@given(seed=st.integers(0, 100))
def test_in_common_equals_the_dense_product(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m, columns = rng.integers(1, 12, 3)
    one, two = rng.random((n, columns)) < 0.3, rng.random((m, columns)) < 0.3
    lists = [Lists.of(*map(torch.from_numpy, np.nonzero(part)), len(part), int(columns)) for part in (one, two)]
    rows = rng.integers(0, n, 5)
    found = in_common(lists[0], torch.from_numpy(rows), lists[1])
    np.testing.assert_array_equal(found, one[rows].astype(float) @ two.T.astype(float))
    owner, column = lists[0].entries(torch.from_numpy(rows))
    again = np.zeros((5, columns), bool)
    again[owner, column] = True
    np.testing.assert_array_equal(again, one[rows])


@pytest.mark.parametrize("largest_bitmap", [0, LARGEST_BITMAP])
@given(known=st.sets(st.integers(0, 99), min_size=1), wanted=st.lists(st.integers(-9, 99), min_size=1, max_size=40))
def test_known_keys_are_found_and_no_others(largest_bitmap: int, known: set[int], wanted: list[int]) -> None:
    pairs = KnownPairs(torch.tensor(sorted(known)), 100, largest_bitmap)
    found = pairs.contain(torch.tensor([wanted, wanted]))
    assert found.tolist() == [[key in known for key in wanted]] * 2
