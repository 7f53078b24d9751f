"""Losses as pure functions of the batch's rows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softplus


def margins(user: Tensor, liked: Tensor, other: Tensor) -> Tensor:
    """`s_ui − s_uj` with `s` the inner product.  (batch,)."""
    return torch.sum(user * (liked - other), dim=1)


def bpr(user: Tensor, liked: Tensor, other: Tensor) -> Tensor:
    """Bayesian personalised ranking, `mean softplus(s_uj − s_ui)`.  A scalar."""
    return softplus(-margins(user, liked, other)).mean()


def scores(user: Tensor, item: Tensor) -> Tensor:
    """Inner products row by row.  (batch,)."""
    return torch.sum(user * item, dim=1)


def cross_entropy(liked: Tensor, other: Tensor) -> Tensor:
    """`mean[ −log σ(s_ui) − log(1 − σ(s_uj)) ]` from scores.  A scalar."""
    return (softplus(-liked) + softplus(other)).mean()


def squared_correlation(one: Tensor, two: Tensor) -> Tensor:
    """Pearson's correlation over the batch, squared; 0 where either side is constant.  A scalar.

    Centred first, in float64; the small constant keeps the gradient finite and nothing else (values of order 1).
    """
    one, two = one.double() - one.double().mean(), two.double() - two.double().mean()
    return (torch.dot(one, two).square() / ((one.square().sum() + 1e-8) * (two.square().sum() + 1e-8))).float()


def half_squares(rows: Tensor, counts: Tensor | None = None) -> Tensor:
    """`½ Σ ‖row‖²` over all rows, each as often as it counts (once without counts).  A scalar."""
    return _HalfSquares.apply(rows, counts)  # type: ignore[no-any-return, no-untyped-call]  # torch leaves it untyped


class _HalfSquares(torch.autograd.Function):
    """One pass over the rows each way, where autograd's own would take four."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, counts: Tensor | None) -> Tensor:
        ctx.save_for_backward(rows, counts)
        squares = torch.linalg.vecdot(rows, rows)
        return 0.5 * (squares.sum() if counts is None else torch.dot(squares, counts))

    @staticmethod
    def backward(ctx: Any, by_sum: Tensor) -> tuple[Tensor, None]:
        rows, counts = ctx.saved_tensors
        weight = by_sum if counts is None else (by_sum * counts)[:, None]
        return weight * rows, None
