from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from dpaa.data.pairs import Pairs
from dpaa.graph import cooccurrence
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods.item_knn import ItemKNN
from tests.methods.tools import as_histories, learned, matrix_of, some_graph


def by_definition(taken: NDArray[np.float64], neighbours: int) -> NDArray[np.float64]:
    """Every score for itself: the k nearest of the item to be scored, as far as the user took them."""
    length = np.maximum(np.sqrt(taken.sum(axis=0)), 1)
    cosine = (taken.T @ taken) / np.outer(length, length)
    np.fill_diagonal(cosine, 0)
    mean = taken.sum(axis=0) / np.count_nonzero(taken.sum(axis=1))
    scores = np.zeros_like(taken)
    for user, row in enumerate(taken):
        for item, similarity in enumerate(cosine):
            nearest = np.argsort(-similarity.astype(np.float32), kind="stable")[:neighbours]
            above = sum(similarity[near] * (row[near] - mean[near]) for near in nearest)
            total = sum(similarity[near] for near in nearest)
            scores[user, item] = mean[item] + (above / total if total else 0)
    return scores


@pytest.mark.parametrize("cells", [3, 4_000_000])
@pytest.mark.parametrize("neighbours", [2, 5, 50])
def test_item_knn_equals_the_definition(neighbours: int, cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cooccurrence, "BLOCK_CELLS", cells)
    graph = some_graph()
    method = learned(ItemKNN, graph, neighbours=neighbours)
    expected = by_definition(matrix_of(graph), neighbours)
    everybody = torch.arange(graph.n_users)
    np.testing.assert_allclose(method.scorer()(everybody), expected, atol=1e-5)
    some = torch.tensor([3, 0])
    np.testing.assert_allclose(method.scorer(some, as_histories(graph))(everybody), expected[:, some], atol=1e-5)
    np.testing.assert_allclose(method.scorer()(everybody[-1:]), expected[-1:], atol=1e-5)  # who took nothing


def test_the_neighbours_are_those_of_the_item_to_be_scored() -> None:
    """Items b and c are alike, a is a little like both: a's nearest is b, but neither b nor c has a for its nearest."""
    pairs = [(0, 1), (0, 2), (1, 1), (1, 2), (2, 0), (2, 1), (3, 0)]
    graph = BipartiteGraph.from_pairs(Pairs.of(*np.array(pairs).T), 4, 3)
    method = learned(ItemKNN, graph, neighbours=1)
    assert method.neighbour[:, 0].tolist() == [1, 2, 1]
    scores = method.scorer()(torch.tensor([0]))[0]
    assert scores[0].item() == pytest.approx(2 / 4 + 1 - 3 / 4)  # the user took b, the one neighbour of a
