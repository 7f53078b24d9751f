from __future__ import annotations

import builtins

import numpy as np
import pytest
import torch

from dpaa.errors import MissingExtraError
from dpaa.methods.als import ALS
from tests.methods.tools import as_histories, learned, matrix_of, some_graph


def test_als_lowers_what_it_is_meant_to_lower_and_solves_newcomers_exactly() -> None:
    pytest.importorskip("implicit", reason="the extra `references` is not installed")
    graph = some_graph()
    method = learned(ALS, graph, embedding_size=6, confidence=5, ridge=0.5, iterations=30)
    taken = matrix_of(graph)
    items = method.item_factors.double().numpy()
    found = method.scorer(None, as_histories(graph))(torch.arange(graph.n_users))
    for user in range(graph.n_users):
        weight = 1 + 4 * taken[user]
        left = items.T @ (weight[:, None] * items) + 0.5 * np.eye(6)
        expected = items @ np.linalg.solve(left, items.T @ (weight * taken[user]))
        np.testing.assert_allclose(found[user], expected, atol=1e-4)
    # A training user's factors are those of a newcomer with the same items, once both sides have resolve_path.
    assert (method.scorer()(torch.arange(graph.n_users)) - found).abs().max() < 0.05


def test_als_without_its_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = builtins.__import__

    def without_implicit(name: str, *rest: object, **more: object) -> object:
        if name.startswith("implicit"):
            raise ImportError(name)
        return usual(name, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without_implicit)
    with pytest.raises(MissingExtraError, match=r"method als needs packages .* pip install 'dpaa\[references\]'"):
        learned(ALS, some_graph())
