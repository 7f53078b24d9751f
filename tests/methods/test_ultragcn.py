from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from dpaa.methods.lightgcn import LightGCN
from dpaa.methods.rows import Batch, Rows, scores
from dpaa.methods.ultragcn import BatchWithNeighbours, UltraGCN, constraint_weights
from tests.methods.spec import spec_graph
from tests.methods.tools import loss_of, matrix_of, readout_of, some_graph, started, trained


def test_weights_by_hand() -> None:
    graph = spec_graph()
    user, item = constraint_weights(graph.user_degree, graph.item_degree)
    beta = user[:, None] * item
    assert beta[0].tolist() == pytest.approx([0.4330, 0.5, 0.6124, 0.6124], abs=1e-4)
    assert beta[2].tolist() == pytest.approx([0.3333, 0.3849, 0.4714, 0.4714], abs=1e-4)


def test_near_items_by_hand() -> None:
    near, weight = started(UltraGCN, spec_graph(), embedding_size=2, neighbours=4).near
    order = near[0].argsort()
    assert weight[0][order].tolist() == pytest.approx([0.4286, 0.3299, 0.2333, 0.2020], abs=1e-4)


def test_loss_equals_the_formula() -> None:
    graph, n = some_graph(), some_graph().n_users
    method = started(
        UltraGCN, graph, embedding_size=8, l2=0, positive_base=0.3, positive_degree=2, negative_base=0.1,
        negative_degree=0.7, negative_weight=5, n_negatives=6, neighbour_weight=0.4, neighbours=3,
    )  # fmt: skip
    batch = next(method.batches(1))
    assert isinstance(batch, BatchWithNeighbours)
    final, taken = readout_of(method), matrix_of(graph)
    du, di = taken.sum(axis=1), taken.sum(axis=0)
    shared = taken.T @ taken
    g = shared.sum(axis=1)
    expected = 0.0
    for u, i in zip(batch.users.tolist(), batch.positive.tolist(), strict=True):
        beta = np.sqrt((du[u] + 1) / (di + 1)) / du[u]
        s = final[n:] @ final[u]
        expected += (0.3 + 2 * beta[i]) * np.logaddexp(0, -s[i])
        expected += 5 * np.mean([(0.1 + 0.7 * beta[j]) * np.logaddexp(0, s[j]) for j in batch.items.tolist()])
        omega = np.where(shared[i] > 0, shared[i] / max(g[i], 1) * np.sqrt((g[i] + 1) / (g + 1)), 0)
        nearest = np.argsort(-omega, kind="stable")[:3]
        expected += 0.4 * np.sum(omega[nearest] * np.logaddexp(0, -s[nearest]))
    assert loss_of(method, batch) == pytest.approx(expected / len(batch), rel=1e-4)


class DrawnCrossEntropy(LightGCN):
    """Matrix factorisation with cross-entropy against items drawn for the batch."""

    def batches(self, epoch: int, start: int = 0):  # type: ignore[no-untyped-def]
        twin = UltraGCN(self.graph, UltraGCN.settings_type(**(self.settings.model_dump() | {"neighbour_weight": 0})))
        return twin.batches(epoch, start)

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        user, positive, _, drawn, _ = batch.split(rows.readout)
        pairs = torch.nn.functional.softplus(-scores(user, positive)).mean()
        l2 = (self.settings.l2 / len(batch)) * rows.half_squares(2 * len(batch))
        return pairs + torch.nn.functional.softplus(user @ drawn.T).mean() + l2


def test_without_degrees_and_neighbours_it_is_matrix_factorisation_with_cross_entropy() -> None:
    graph = some_graph()
    plain = {"positive_degree": 0, "negative_degree": 0, "neighbour_weight": 0}
    ones = {"positive_base": 1, "negative_base": 1, "negative_weight": 1}
    found = trained(UltraGCN, graph, layers=0, **plain, **ones)
    torch.testing.assert_close(found.ego.rows(), trained(DrawnCrossEntropy, graph, layers=0).ego.rows())
