"""The direction of popularity, against dense linear algebra and in cases whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dpaa.data.pairs import Pairs
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.trace.direction import energy_share, first_singular_vectors, popularity_direction
from tests.conftest import random_pairs


def dense(graph: BipartiteGraph) -> np.ndarray:
    matrix = np.zeros((graph.n_users, graph.n_items))
    matrix[graph.edge_user.numpy(), graph.edge_item.numpy()] = graph.edge_count.numpy()
    return matrix


@pytest.mark.parametrize("seed", range(3))
def test_first_singular_vectors_are_those_of_dense_algebra(seed: int) -> None:
    graph = BipartiteGraph.from_pairs(random_pairs(np.random.default_rng(seed), 30, 20), 30, 20)
    users, items = first_singular_vectors(graph)
    left, _, right = np.linalg.svd(dense(graph))
    np.testing.assert_allclose(users, np.abs(left[:, 0]), atol=1e-9)
    np.testing.assert_allclose(items, np.abs(right[0]), atol=1e-9)


def test_all_energy_none_and_chance() -> None:
    rng = np.random.default_rng(0)
    graph = BipartiteGraph.from_pairs(random_pairs(rng, 400, 300), 400, 300)
    users, items = first_singular_vectors(graph)
    on = np.concatenate([np.outer(users, rng.normal(size=5)), np.outer(items, rng.normal(size=5))])
    random = torch.from_numpy(rng.normal(size=(700, 64)))
    off = random.clone()
    off[400:] -= torch.from_numpy(np.outer(items, items @ random[400:].numpy()))
    found = popularity_direction(graph, [torch.from_numpy(on), off], random)
    assert [share.layer for share in found.shares] == [0, 1, None]
    assert found.shares[0].users == pytest.approx(1)
    assert found.shares[0].items == pytest.approx(1)
    assert found.shares[1].items == pytest.approx(0, abs=1e-12)
    assert found.readout.items == pytest.approx(found.chance_items, rel=0.5)
    assert found.as_json()["shares"][2]["layer"] is None


def test_summing_over_neighbours_draws_every_table_onto_it() -> None:
    """Power iteration, where nothing is divided by degrees."""
    graph = BipartiteGraph.from_pairs(random_pairs(np.random.default_rng(1), 60, 40), 60, 40)
    matrix, table = dense(graph), np.random.default_rng(2).normal(size=(40, 8))
    _, items = first_singular_vectors(graph)
    shares = []
    for _ in range(4):
        shares.append(energy_share(items, torch.from_numpy(table)))
        table = matrix.T @ matrix @ table
    assert shares == sorted(shares)
    assert shares[-1] > 0.99


def test_no_pairs_no_direction() -> None:
    graph = BipartiteGraph.from_pairs(Pairs.of([], []), 3, 2)
    found = popularity_direction(graph, [], torch.zeros(5, 4))
    assert (found.cosine, found.readout.users, found.readout.items) == (0, 0, 0)
