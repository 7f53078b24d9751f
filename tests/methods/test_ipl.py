from __future__ import annotations

import torch

from dpaa.methods.ipl import IPL, BatchWithPairs, deviation
from tests.methods.tools import some_graph, started


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
