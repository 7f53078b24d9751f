from __future__ import annotations

import numpy as np
import pytest
import torch

from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods.ips import IPS
from dpaa.methods.lightgcn import LightGCN
from dpaa.methods.rows import Batch, Rows
from tests.methods.tools import even_graph, l2_of, loss_of, readout_of, some_graph, started, trained


def test_toy_weights(toy_graph: BipartiteGraph) -> None:
    torch.testing.assert_close(started(IPS, toy_graph).item_weight, torch.tensor([2 / 3, 1.0, 1.0]))


def test_toy_data_term(toy_graph: BipartiteGraph) -> None:
    """Margins 0 (item 0, weight 2/3) and 1 (item 1, weight 1)."""
    method = started(IPS, toy_graph, embedding_size=1, layers=1, l2=0.0)
    batch = Batch(torch.tensor([0, 0]), torch.tensor([0, 1]), torch.tensor([2, 2]))
    rows = Rows(torch.tensor([[1.0], [1.0], [0.0], [1.0], [0.0], [0.0]]), torch.zeros(6, 1))
    assert method.loss(batch, rows).item() == pytest.approx(0.3877, abs=1e-4)


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


def test_even_popularity_is_lightgcn_bit_for_bit() -> None:
    graph = even_graph()
    assert torch.equal(trained(IPS, graph).ego.rows(), trained(LightGCN, graph).ego.rows())


def test_a_cap_at_the_smallest_weight_is_lightgcn_bit_for_bit() -> None:
    graph = some_graph()
    assert torch.equal(trained(IPS, graph, cap_quantile=0).ego.rows(), trained(LightGCN, graph).ego.rows())
    assert not torch.equal(trained(IPS, graph).ego.rows(), trained(LightGCN, graph).ego.rows())
