from __future__ import annotations

import pytest
import torch

from dpaa.methods.rows import bpr, half_squares, margins, margins_of_rows


def test_bpr_by_hand() -> None:
    user = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    positive, negative = torch.tensor([[2.0, 0.0], [0.0, 0.0]]), torch.tensor([[1.0, 0.0], [0.0, 0.0]])
    assert margins(user, positive, negative).tolist() == [1.0, 0.0]
    assert bpr(user, positive, negative).item() == pytest.approx((0.3132617 + 0.6931472) / 2)


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


def test_half_squares_of_tiles_count_each_row() -> None:
    rows = torch.tensor([[1.0, 2.0, 2.0], [3.0, 0.0, 1.0]], dtype=torch.float64, requires_grad=True)
    counts = torch.tensor([2.0, 5.0], dtype=torch.float64)
    total = half_squares(rows[:, :2], rows[:, 2:], counts=counts)
    assert total.item() == pytest.approx(0.5 * (2 * 9 + 5 * 10))
    assert torch.autograd.gradcheck(lambda x: half_squares(x[:, :2], x[:, 2:], counts=counts), rows)


def test_margins_of_rows_are_those_of_the_gathered_rows() -> None:
    generator = torch.Generator().manual_seed(1)
    rows = torch.randn(6, 5, dtype=torch.float64, generator=generator, requires_grad=True)
    place = torch.tensor(
        [0, 1, 0, 0, 2, 3, 3, 2, 4, 2, 3, 4]
    )  # four triples; users, positive and negative items repeat
    gathered = margins(*torch.split(rows.index_select(0, place), 4))
    found = margins_of_rows(rows, place)
    assert torch.equal(found, gathered)
    weight = torch.randn(4, dtype=torch.float64, generator=generator)
    (expected,) = torch.autograd.grad(torch.dot(gathered, weight), rows)
    torch.testing.assert_close(torch.autograd.grad(torch.dot(found, weight), rows)[0], expected)
