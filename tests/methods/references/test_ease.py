from __future__ import annotations

import numpy as np
import pytest
import torch

from dpaa.errors import InputError
from dpaa.methods import ease
from dpaa.methods.ease import EASE
from dpaa.methods.ips_lae import IPSLAE
from tests.methods.tools import as_histories, learned, matrix_of, some_graph


def test_ease_equals_the_definition() -> None:
    graph = some_graph()
    method = learned(EASE, graph, ridge=3)
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
    with pytest.raises(
        InputError, match=r"method ease needs 0\.0 GB for 20 items and 0\.0 GB are at hand; take item-knn"
    ):
        learned(EASE, some_graph())


def test_ips_lae_without_slope_ranks_as_ease_and_with_it_lifts_rare_items() -> None:
    graph, everybody = some_graph(), torch.arange(30)
    plain, flat, steep = (
        learned(kind, graph, ridge=3, **slope).scorer()(everybody)
        for kind, slope in ((EASE, {}), (IPSLAE, {"propensity_slope": 0}), (IPSLAE, {"propensity_slope": 2}))
    )
    torch.testing.assert_close(flat, 2 * plain)  # every propensity is ½
    count = graph.item_degree
    rare, popular = (int(index) for index in (count.masked_fill(count == 0, 99).argmin(), count.argmax()))
    assert (steep / plain)[:, rare].nanmean() > 2 > (steep / plain)[:, popular].nanmean()
