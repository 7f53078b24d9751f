"""Every fast kernel against its slow twin."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dpaa.graph import BipartiteGraph, kernels
from dpaa.graph.kernels import KERNELS, in_row_blocks, top_k
from dpaa.methods._shared import k_means
from dpaa.methods.samplers import gap_keys, nth_missing
from tests.conftest import random_pairs
from tests.graph import reference


@pytest.mark.parametrize("kernel", KERNELS)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 12), width=st.integers(1, 40), density=st.floats(0, 1))
def test_products_are_weighted_sums_of_neighbours(kernel: str, seed: int, n: int, width: int, density: float) -> None:
    rng = np.random.default_rng(seed)
    present = rng.random((n, n)) < density
    indptr = np.concatenate([[0], np.cumsum(present.sum(axis=1))]).astype(np.int32)
    neighbours = np.nonzero(present)[1].astype(np.int32)
    weights = rng.normal(size=len(neighbours)).astype(np.float32)
    table = rng.normal(size=(n, width)).astype(np.float32)
    found = KERNELS[kernel](*(torch.from_numpy(array) for array in (indptr, neighbours, weights, table)))
    expected = reference.propagate(indptr, neighbours, weights.astype(np.float64), table.astype(np.float64))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("kernel", "most"), [("bag", 2), ("bag", 7), ("csr", 3)])
def test_blocks_of_rows_give_the_same_bits(kernel: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Users and items without neighbours among them, and one item that has more slots than a block should."""
    monkeypatch.setattr(kernels, "LEAST_SLOTS", 20)
    graph = BipartiteGraph.from_pairs(random_pairs(np.random.default_rng(4), 40, 8, 0.3), 45, 12)
    values = graph.slot_values(graph.symmetric_weights())
    table = torch.randn(graph.n_nodes, 32, generator=torch.Generator().manual_seed(0))
    seen = []

    def counted(*arrays: torch.Tensor) -> torch.Tensor:
        seen.append(len(arrays[0]) - 1)
        return KERNELS[kernel](*arrays)

    with ThreadPoolExecutor(2) as pool:
        found = in_row_blocks(counted, pool, most)(graph.indptr, graph.neighbours, values, table)
    assert torch.equal(found, KERNELS[kernel](graph.indptr, graph.neighbours, values, table))
    assert (len(seen), sum(seen)) == (most, graph.n_nodes)


@given(
    scores=hnp.arrays(
        np.float32,
        hnp.array_shapes(min_dims=2, max_dims=2, max_side=9),
        elements=st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 1.0, 2.0]),
    ),
    k=st.integers(1, 12),
)
def test_of_the_best_scores_ties_go_to_the_lower_column(scores: np.ndarray, k: int) -> None:
    values, columns = top_k(torch.from_numpy(scores.copy()), k)
    expected = reference.top_k(scores.astype(np.float64), k)
    np.testing.assert_array_equal(columns.numpy(), expected)
    taken = np.where(expected >= 0, np.take_along_axis(scores, expected.clip(min=0), axis=1), -np.inf)
    np.testing.assert_array_equal(values.numpy(), taken)


@given(
    seed=st.integers(0, 2**32 - 1), n_users=st.integers(1, 6), n_items=st.integers(1, 12), density=st.floats(0, 0.95)
)
def test_negatives_by_rank_are_the_missing_items(seed: int, n_users: int, n_items: int, density: float) -> None:
    pairs = random_pairs(np.random.default_rng(seed), n_users, n_items, density)
    indptr = np.searchsorted(pairs.user, np.arange(n_users + 1))
    keys = gap_keys(indptr, pairs.item, n_items)
    for user in range(n_users):
        taken = pairs.item[indptr[user] : indptr[user + 1]].tolist()
        ranks = np.arange(n_items - len(taken))
        found = nth_missing(ranks, np.full(len(ranks), user), indptr, keys, n_items)
        assert found.tolist() == [item for item in range(n_items) if item not in taken]


def test_clusters_far_apart_are_separated_and_never_more_than_distinct_rows() -> None:
    centres = torch.tensor([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0], [50.0, 50.0]])
    truth, generators = torch.arange(200) % 4, [torch.Generator().manual_seed(9) for _ in range(4)]
    rows = centres[truth] + torch.randn(200, 2, generator=generators[0])
    found = k_means(rows, 4, generators[1])
    assert len(set(zip(truth.tolist(), found.tolist(), strict=True))) == 4
    assert torch.equal(found, k_means(rows, 4, generators[2]))
    assert len(k_means(torch.tensor([[1.0], [1.0], [2.0]]), 50, generators[3]).unique()) == 2
