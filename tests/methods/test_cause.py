from __future__ import annotations

import numpy as np
import pytest
import torch

from dpaa.data.dataset import Dataset
from dpaa.data.pairs import Pairs
from dpaa.data.randomised import with_randomised
from dpaa.errors import InputError
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods.base import attach
from dpaa.methods.cause import CausE
from dpaa.methods.lightgcn import LightGCN
from dpaa.methods.tables import Tables
from dpaa.runs.fit import make_method
from tests.methods.tools import (
    l2_of,
    loss_of,
    readout_of,
    some_graph,
    started,
)

SAMPLE = Pairs.of([0, 1, 1, 5, 9, 9], [3, 4, 7, 3, 0, 11])


def with_sample(**settings: object) -> CausE:
    method = attach(CausE(**settings), some_graph())
    method.take(SAMPLE)
    return method


def test_loss_equals_the_slow_twin() -> None:
    method = with_sample(embedding_size=8, layers=2, agreement_weight=0.3)
    Tables.start(method)
    batch = next(method.batches(1))
    other = started(LightGCN, BipartiteGraph.from_pairs(SAMPLE, 30, 20), embedding_size=8, layers=2)
    other.tables.ego.copy_(method.treatment.detach())
    z, t = readout_of(method), readout_of(other)

    def entropy(vectors: np.ndarray, users: torch.Tensor, liked: torch.Tensor, others: torch.Tensor) -> float:
        good = np.sum(vectors[users] * vectors[liked + 30], axis=1)
        bad = np.sum(vectors[users] * vectors[others + 30], axis=1)
        return float(np.mean(np.log1p(np.exp(-good)) + np.log1p(np.exp(bad))))

    randomised = method.randomised_triples(batch)
    assert sorted(zip(randomised[0].tolist(), randomised[1].tolist(), strict=True)) == sorted(
        zip(SAMPLE.user.tolist(), SAMPLE.item.tolist(), strict=True)
    )
    expected = entropy(z, batch.users, batch.positive, batch.negative) + entropy(t, *randomised) + l2_of(method, batch)
    gap = (z - t) ** 2
    items = torch.cat([batch.positive, batch.negative]) + 30
    expected += 0.3 * (gap[batch.users].mean() + gap[items].mean())
    assert loss_of(method, batch) == pytest.approx(expected, abs=1e-5)


def test_without_a_randomised_sample_one_sentence(small_world: Dataset) -> None:
    with pytest.raises(
        InputError, match=r"cause also learns from pairs of randomised exposure, and .* carries none; make"
    ):
        make_method(small_world, "cause", {})
    assert isinstance(make_method(with_randomised(small_world, 0.3), "cause", {}), CausE)
