from __future__ import annotations

import numpy as np
import pytest
import torch

from dpaa.methods.dna import DNA
from tests.methods.tools import (
    as_histories,
    l2_of,
    loss_of,
    readout_of,
    some_graph,
    started,
    trained,
)


def test_loss_and_scores_equal_the_formula() -> None:
    graph = some_graph()
    method = started(DNA, graph, embedding_size=8, layers=2, length=1.7, l2=0.1)
    with torch.no_grad():
        method.bias.normal_(0, 0.5)
    batch, vectors, bias = next(method.batches(1)), readout_of(method), method.bias.detach().double().numpy()
    items = vectors[graph.n_users :]
    unit = 1.7 * items / np.maximum(np.linalg.norm(items, axis=1, keepdims=True), 1e-12)
    scores = vectors[: graph.n_users] @ unit.T + bias
    gap = scores[batch.users, batch.positive] - scores[batch.users, batch.negative]
    expected = np.mean(np.log1p(np.exp(-gap))) + l2_of(method, batch)
    expected += 0.1 * 0.5 * (np.sum(bias[batch.positive] ** 2) + np.sum(bias[batch.negative] ** 2)) / len(batch)
    assert loss_of(method, batch) == pytest.approx(expected, abs=1e-6)
    np.testing.assert_allclose(method.scorer()(torch.arange(graph.n_users)).numpy(), scores, atol=1e-5)
    some = torch.tensor([3, 1])
    np.testing.assert_allclose(method.scorer(some)(torch.tensor([2])).numpy(), scores[[2]][:, [3, 1]], atol=1e-5)


def test_vectors_are_what_the_scorer_multiplies_for_newcomers_too() -> None:
    graph = some_graph()
    method = trained(DNA, graph)
    histories = as_histories(graph)
    vectors, users = method.vectors(None, histories), torch.arange(5)
    assert torch.equal(vectors.queries(users) @ vectors.items.T, method.scorer(None, histories)(users))
    assert torch.equal(vectors.items, method.vectors().items)
