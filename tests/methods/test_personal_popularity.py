from __future__ import annotations

import numpy as np
import pytest
import torch

from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods.ppac import PPAC
from tests.methods.tools import (
    rows_of_personal_popularity,
    some_graph,
    started,
)


def similar_by_definition(graph: BipartiteGraph, k: int) -> list[list[int]]:
    taken = [set(graph.edge_item[graph.edge_user == user].tolist()) for user in range(graph.n_users)]
    found = []
    for user, mine in enumerate(taken):
        likeness = [
            (len(mine & theirs) / len(mine | theirs), other)
            for other, theirs in enumerate(taken)
            if other != user and mine & theirs
        ]
        best = [other for _, other in sorted(likeness, reverse=True)[:k]]  # ties to the larger user
        found.append(best + [-1] * (k - len(best)))
    return found


@pytest.mark.parametrize("k", [1, 4, 40])
def test_similar_users_and_their_popularity_equal_the_definition(k: int) -> None:
    graph = some_graph()
    method = started(PPAC, graph, neighbours=k)
    expected = similar_by_definition(graph, k)
    assert method.personal.similar_users.tolist() == expected
    counts = np.zeros((graph.n_users, graph.n_items))
    for user, similar in enumerate(expected):
        for other in similar:
            if other >= 0:
                counts[user, graph.edge_item[graph.edge_user == other].numpy()] += 1
    norms = np.linalg.norm(counts, axis=1, keepdims=True)
    expected_rows = counts / np.where(norms > 0, norms, 1)
    np.testing.assert_allclose(rows_of_personal_popularity(method), expected_rows, atol=1e-6)
    method.finish()
    plain, personal = method._parts(None, None)(torch.arange(graph.n_users), True)
    np.testing.assert_allclose(personal, expected_rows, atol=1e-6)
    assert torch.equal(plain, method.scorer()(torch.arange(graph.n_users)))
