from __future__ import annotations

import pytest
import torch

from dpaa.methods.losses import bpr, half_squares, margins


def test_bpr_by_hand() -> None:
    user = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    liked, other = torch.tensor([[2.0, 0.0], [0.0, 0.0]]), torch.tensor([[1.0, 0.0], [0.0, 0.0]])
    assert margins(user, liked, other).tolist() == [1.0, 0.0]
    assert bpr(user, liked, other).item() == pytest.approx((0.3132617 + 0.6931472) / 2)


def test_bpr_survives_huge_margins() -> None:
    user = torch.full((1, 1), 1e4, requires_grad=True)
    loss = bpr(user, torch.zeros(1, 1), torch.ones(1, 1))
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(user.grad).all()  # type: ignore[arg-type]


def test_half_squares_and_its_gradient() -> None:
    rows = torch.tensor([[1.0, 2.0], [3.0, 0.0]], requires_grad=True)
    total = half_squares(rows)
    total.backward()
    assert total.item() == pytest.approx(0.5 * 14)
    assert rows.grad is not None
    assert torch.equal(rows.grad, rows)
