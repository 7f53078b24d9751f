from __future__ import annotations

import numpy as np
import pytest
import torch

from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods.ips import IPS
from tests.methods.tools import l2_of, loss_of, readout_of, some_graph, started


def test_toy_weights(toy_graph: BipartiteGraph) -> None:
    torch.testing.assert_close(started(IPS, toy_graph).item_weight, torch.tensor([2 / 3, 1.0, 1.0]))


def test_loss_equals_the_formula() -> None:
    graph = some_graph()
    method = started(IPS, graph, embedding_size=8, layers=2, l2=0.01)
    batch = next(method.batches(1))
    final, n = readout_of(method), graph.n_users
    count = graph.item_degree.double().numpy() + 1
    inverse = count.max() / count
    weight = np.minimum(inverse, np.median(inverse)) / np.median(inverse)
    u, i, j = batch.users.numpy(), batch.positive.numpy(), batch.negative.numpy()
    margin = np.sum(final[u] * (final[n + i] - final[n + j]), axis=1)
    expected = np.mean(weight[i] * np.logaddexp(0, -margin)) + l2_of(method, batch)
    assert loss_of(method, batch) == pytest.approx(expected, abs=1e-6)
