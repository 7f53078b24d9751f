from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from dpaa.methods.cvib import CVIB, agreement, confidence
from tests.methods.tools import (
    l2_of,
    loss_of,
    readout_of,
    sigmoid,
    some_graph,
    started,
)


@pytest.mark.parametrize("score", [-500.0, 0.0, 500.0])
def test_saturated_predictions_stay_finite(score: float) -> None:
    scores = torch.full((3,), score, requires_grad=True)
    total = agreement(torch.sigmoid(scores), torch.sigmoid(scores)) + confidence(scores)
    total.backward()
    assert torch.isfinite(total)
    assert torch.isfinite(scores.grad).all()  # type: ignore[arg-type]
    assert -1 / math.e - 1e-6 <= confidence(scores).item() <= 0


def test_loss_equals_the_formula() -> None:
    graph = some_graph()
    method = started(CVIB, graph, embedding_size=8, layers=2, agreement_weight=0.7, confidence_weight=0.2, l2=0.01)
    batch = next(method.batches(1))
    final, n = readout_of(method), graph.n_users
    u, i, j = batch.users.numpy(), batch.positive.numpy(), batch.negative.numpy()
    positive, negative = np.sum(final[u] * final[n + i], axis=1), np.sum(final[u] * final[n + j], axis=1)
    p = sigmoid(np.concatenate([positive, negative]))
    q = sigmoid(np.sum(final[batch.random_users] * final[n + batch.random_items.numpy()], axis=1))
    entropy = -np.mean(np.concatenate([np.log(sigmoid(positive)), np.log(1 - sigmoid(negative))]))
    agreed = -p.mean() * np.log(q.mean()) - (1 - p.mean()) * np.log(1 - q.mean())
    expected = entropy + 0.7 * agreed + 0.2 * np.mean(p * np.log(p)) + l2_of(method, batch)
    assert loss_of(method, batch) == pytest.approx(expected, abs=1e-6)


def test_random_pairs_cover_everything_and_follow_seed_epoch_and_place() -> None:
    method = started(CVIB, some_graph(), batch_size=16)
    whole, later = list(method.batches(2)), list(method.batches(2, start=3))
    assert all(len(batch.random_users) == 2 * len(batch) for batch in whole)
    assert torch.equal(later[0].random_items, whole[3].random_items)
    assert torch.equal(later[0].positive, whole[3].positive)
    assert not torch.equal(next(method.batches(3)).random_items, whole[0].random_items)
    epochs = [batch.random_items for epoch in range(20) for batch in method.batches(epoch)]
    assert set(torch.cat(epochs).tolist()) == set(range(20))  # the cold item too
