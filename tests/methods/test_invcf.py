from __future__ import annotations

import pytest
import torch

from dpaa.methods._clusters import distance_correlation
from dpaa.methods.invcf import SHUFFLE, InvCF, batch_softmax
from tests.methods.tools import loss_of, readout_of, some_graph, started

OFF = {"popularity_weight": 0, "mixed_weight": 0, "discrepancy_weight": 0}


def test_loss_equals_the_formula() -> None:
    graph, n = some_graph(), some_graph().n_users
    size = {"embedding_size": 8, "layers": 2, "l2": 0.01}
    weights = {"popularity_weight": 0.3, "mixed_weight": 0.5, "discrepancy_weight": 0.7}
    plain, method = started(InvCF, graph, **size, **OFF), started(InvCF, graph, **size, **weights)
    batch = next(method.batches(1))
    final = torch.from_numpy(readout_of(method)).float()
    user, item = final[batch.users], final[batch.positive + n]
    levels = [sorted(set(degree.tolist())) for degree in (graph.user_degree, graph.item_degree)]
    by_user = torch.stack([method.user_popularity[levels[0].index(d)] for d in graph.user_degree[batch.users].tolist()])
    by_item = torch.stack(
        [method.item_popularity[levels[1].index(d)] for d in graph.item_degree[batch.positive].tolist()]
    )
    order = torch.randperm(len(batch), generator=method.generator(SHUFFLE, 1, 0))
    expected = loss_of(plain, batch) + 0.3 * batch_softmax(by_user, by_item, 0.15).item()
    for u, i in ((by_user, by_item), (by_user[order], by_item[order])):
        expected += 0.5 * batch_softmax(torch.cat([user, u], dim=1), torch.cat([item, i], dim=1), 0.15).item()
    for nodes, z, p in ((batch.users, user, by_user), (batch.positive, item, by_item)):
        first = [nodes.tolist().index(one) for one in sorted(set(nodes.tolist()))]
        expected += 0.7 * distance_correlation(z[first], p[first]).item()
    assert loss_of(method, batch) == pytest.approx(expected, abs=1e-4)
