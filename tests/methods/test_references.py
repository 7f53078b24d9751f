from __future__ import annotations

import builtins

import numpy as np
import pytest
import torch

from dpaa.data.pairs import Pairs
from dpaa.errors import InputError, MissingExtraError
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods.base import Histories
from dpaa.methods.references import ease
from dpaa.methods.references.als import ALS, AlsSettings
from dpaa.methods.references.ease import EASE, EaseSettings
from dpaa.methods.references.item_knn import ItemKNN, ItemKnnSettings
from tests.methods.tools import some_graph


def matrix_of(graph: BipartiteGraph) -> np.ndarray:
    dense = np.zeros((graph.n_users, graph.n_items))
    dense[graph.edge_user, graph.edge_item] = 1
    return dense


def as_histories(graph: BipartiteGraph) -> Histories:
    return Histories(Pairs.of(graph.edge_user.numpy(), graph.edge_item.numpy()), graph.n_users)


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


def test_ease_equals_the_definition() -> None:
    graph = some_graph()
    method = EASE(graph, EaseSettings(ridge=3))
    method.fit()
    taken = matrix_of(graph)
    inverse = np.linalg.inv(taken.T @ taken + 3 * np.eye(graph.n_items))
    expected = np.eye(graph.n_items) - inverse / np.diag(inverse)
    np.fill_diagonal(expected, 0)
    everybody = torch.arange(graph.n_users)
    np.testing.assert_allclose(method.scorer()(everybody), taken @ expected, atol=1e-5)
    some = torch.tensor([3, 0])
    found = method.scorer(some, as_histories(graph))(everybody)
    np.testing.assert_allclose(found, (taken @ expected)[:, some], atol=1e-5)


def test_ease_refuses_what_does_not_fit_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ease, "memory_at_hand", lambda: 9_000)
    method = EASE(some_graph(), EaseSettings())
    with pytest.raises(
        InputError, match=r"method ease needs 0\.0 GB for 20 items and 0\.0 GB are at hand; take item-knn"
    ):
        method.fit()


def test_als_lowers_what_it_is_meant_to_lower_and_solves_newcomers_exactly() -> None:
    pytest.importorskip("implicit", reason="the extra `references` is not installed")
    graph = some_graph()
    settings = AlsSettings(embedding_size=6, confidence=5, ridge=0.5, iterations=30)
    method = ALS(graph, settings)
    method.fit()
    taken = matrix_of(graph)
    items = method.item_factors.double().numpy()
    found = method.scorer(None, as_histories(graph))(torch.arange(graph.n_users))
    for user in range(graph.n_users):
        weight = 1 + 4 * taken[user]
        left = items.T @ (weight[:, None] * items) + 0.5 * np.eye(6)
        expected = items @ np.linalg.solve(left, items.T @ (weight * taken[user]))
        np.testing.assert_allclose(found[user], expected, atol=1e-4)
    # A training user's factors are those of a newcomer with the same items, once both sides have settled.
    assert (method.scorer()(torch.arange(graph.n_users)) - found).abs().max() < 0.05


def test_als_without_its_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = builtins.__import__

    def without_implicit(name: str, *rest: object, **more: object) -> object:
        if name.startswith("implicit"):
            raise ImportError(name)
        return usual(name, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without_implicit)
    with pytest.raises(MissingExtraError, match=r"method als needs packages .* pip install 'dpaa\[references\]'"):
        ALS(some_graph(), AlsSettings()).fit()
