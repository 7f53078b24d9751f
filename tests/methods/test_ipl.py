from __future__ import annotations

import numpy as np
import pytest
import torch

from dpaa.methods.ipl import IPL, BatchWithPairs, deviation, hit_ratios
from dpaa.methods.lightgcn import LightGCN
from tests.methods.spec import ITEMS, USERS, spec_graph
from tests.methods.tools import loss_of, readout_of, sigmoid, some_graph, started, trained


@pytest.mark.parametrize(("power", "expected"), [(1.0, 0.09906), (1.5, 0.27480), (2.0, 0.65784)])
def test_by_hand(power: float, expected: float) -> None:
    graph = spec_graph()
    users, items = graph.edge_user.long(), graph.edge_item.long()
    ratios = hit_ratios((USERS @ ITEMS.T)[users, items], items, power)
    if power == 2:
        assert ratios.tolist() == pytest.approx([1.9621, 1.3535, 0.7311, 0.5], abs=1e-4)
    assert deviation(ratios).item() == pytest.approx(expected, abs=1e-5)


def test_loss_equals_the_formula() -> None:
    graph, n = some_graph(), some_graph().n_users
    plain = started(LightGCN, graph, embedding_size=8, layers=2)
    method = started(IPL, graph, embedding_size=8, layers=2, evenness_weight=2.0, items_per_step=7)
    batch, ours = next(plain.batches(1)), next(method.batches(1))
    assert isinstance(ours, BatchWithPairs)
    final, ratios = readout_of(method), []
    for item in ours.pair_items.unique().tolist():
        users = graph.edge_user[graph.edge_item == item].numpy()
        assert sorted(ours.pair_users[ours.pair_items == item].tolist()) == sorted(users.tolist())
        ratios.append(sigmoid(final[users] @ final[n + item]).sum() / len(users) ** 0.5)
    assert len(ratios) == 7
    expected = loss_of(plain, batch) + 2.0 * np.std(ratios, ddof=1)
    assert loss_of(method, ours) == pytest.approx(expected, abs=1e-5)


def test_without_weight_it_is_lightgcn_bit_for_bit() -> None:
    graph = some_graph()
    plain = trained(LightGCN, graph)
    assert torch.equal(trained(IPL, graph, evenness_weight=0).ego.rows(), plain.ego.rows())
    assert not torch.equal(trained(IPL, graph).ego.rows(), plain.ego.rows())


def test_pairs_are_bounded_and_a_function_of_seed_epoch_and_place() -> None:
    method = started(IPL, some_graph(), batch_size=16, users_per_step=9, items_per_step=10)
    whole, late = list(method.batches(2)), list(method.batches(2, start=1))
    assert isinstance(whole[1], BatchWithPairs)
    assert isinstance(late[0], BatchWithPairs)
    assert torch.equal(whole[1].pair_users, late[0].pair_users)
    assert len(whole[1].pair_items.unique()) >= 2


def test_equal_ratios_have_a_finite_gradient() -> None:
    ratios = torch.ones(4, requires_grad=True)
    deviation(ratios).backward()
    assert torch.isfinite(ratios.grad).all()  # type: ignore[arg-type]
