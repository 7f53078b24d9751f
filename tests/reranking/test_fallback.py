"""The list for somebody nobody knows: the mean over users of their scores, dial included."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import dpaa
from dpaa.data.dataset import Dataset
from dpaa.reranking.dial import dialled
from dpaa.reranking.fallback import Fallback
from tests.conftest import TINY


@pytest.mark.parametrize("method", ["lightgcn", "macr", "ease", "most-popular"])
@pytest.mark.parametrize("kappa", [-0.7, 0.0, 1.5])
def test_it_is_the_mean_of_the_dialled_scores(small_world: Dataset, method: str, kappa: float) -> None:
    model = dpaa.fit(small_world, method, **(TINY if method in ("lightgcn", "macr") else {}))
    users = model.method.graph.user_degree.nonzero().squeeze(1)
    wanted = dialled(model.method, kappa)(users).double().mean(dim=0)
    found = Fallback.of(model.method).scores(kappa)
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=2e-4, atol=2e-4 * float(wanted.abs().max()))


def test_many_users_of_a_method_without_vectors_are_sampled(
    small_world: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = dpaa.fit(small_world, "ease")
    whole = Fallback.of(model.method).scores(0.0)
    monkeypatch.setattr("dpaa.reranking.fallback.MOST_USERS", 60)
    few = Fallback.of(model.method).scores(0.0)
    assert torch.corrcoef(torch.stack([whole, few]))[0, 1] > 0.8


def test_a_turn_down_takes_counts_out(small_world: Dataset) -> None:
    model = dpaa.fit(small_world, "lightgcn", **TINY)
    counts = model.method.graph.item_degree.numpy()
    means = []
    for kappa in (1.0, 0.0, -0.5, -2.0):
        found = model.recommend(["nobody"], k=20, popularity_dial=kappa)
        assert found["source"].unique().to_list() == ["popularity"]
        means.append(counts[small_world.item_index(found["item_id"])].mean())
    assert means == sorted(means, reverse=True)
    assert means[-1] < means[0] / 2
