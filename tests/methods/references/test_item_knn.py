from __future__ import annotations

import numpy as np
import pytest
import torch

from dpaa.methods.references.item_knn import ItemKNN, ItemKnnSettings
from tests.methods.tools import as_histories, matrix_of, some_graph


@pytest.mark.parametrize("neighbours", [2, 5, 50])
def test_item_knn_equals_the_definition(neighbours: int) -> None:
    graph = some_graph()
    method = ItemKNN(graph, ItemKnnSettings(neighbours=neighbours))
    method.fit()
    taken = matrix_of(graph)
    length = np.maximum(np.sqrt(taken.sum(axis=0)), 1)
    cosine = (taken.T @ taken) / np.outer(length, length)
    np.fill_diagonal(cosine, 0)
    kept = np.zeros_like(cosine)
    for item, row in enumerate(cosine.astype(np.float32)):
        nearest = np.argsort(-row, kind="stable")[:neighbours]
        kept[item, nearest] = cosine[item, nearest]
    everybody = torch.arange(graph.n_users)
    np.testing.assert_allclose(method.scorer()(everybody), taken @ kept, atol=1e-5)
    some = torch.tensor([3, 0])
    np.testing.assert_allclose(method.scorer(some, as_histories(graph))(everybody), (taken @ kept)[:, some], atol=1e-5)
