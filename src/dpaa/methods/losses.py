"""Losses as pure functions of the batch's rows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softplus

from dpaa.kernels.add_rows import add_rows_


def margins(user: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
    """`s_ui − s_uj` with `s` the inner product.  (batch,)."""
    return torch.sum(user * (positive - negative), dim=1)


def bpr(user: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
    """Bayesian personalised ranking, `mean softplus(s_uj − s_ui)`.  A scalar."""
    return softplus(-margins(user, positive, negative)).mean()


def margins_of_rows(rows: Tensor, place: Tensor) -> Tensor:
    """`margins` of the rows at these places: those of the users, then of positive and of negative items.  (batch,)."""
    return _Margins.apply(rows, place)  # type: ignore[no-any-return, no-untyped-call]  # torch leaves it untyped


class _Margins(torch.autograd.Function):
    """Half the passes of autograd's own: the gradient goes straight to the distinct rows."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, place: Tensor) -> Tensor:
        users, positive, negative = place.view(3, -1)
        ctx.user = rows.index_select(0, users)
        ctx.difference = rows.index_select(0, positive).sub_(rows.index_select(0, negative))
        ctx.n_rows = len(rows)
        ctx.save_for_backward(place)
        return torch.sum(ctx.user * ctx.difference, dim=1)

    @staticmethod
    def backward(ctx: Any, by_margin: Tensor) -> tuple[Tensor, None]:
        users, positive, negative = ctx.saved_tensors[0].view(3, -1)
        by_item, by_user, ctx.user, ctx.difference = ctx.user, ctx.difference, None, None  # there is one way back
        by_rows = by_item.new_zeros(ctx.n_rows, by_item.shape[1])
        add_rows_(by_rows, positive, by_item.mul_(by_margin[:, None]))
        add_rows_(by_rows, users, by_user.mul_(by_margin[:, None]))
        return add_rows_(by_rows, negative, by_item.neg_()), None


def scores(user: Tensor, item: Tensor) -> Tensor:
    """Inner products row by row.  (batch,)."""
    return torch.sum(user * item, dim=1)


def cross_entropy(positive: Tensor, negative: Tensor) -> Tensor:
    """`mean[ −log σ(s_ui) − log(1 − σ(s_uj)) ]` from scores.  A scalar."""
    return (softplus(-positive) + softplus(negative)).mean()


def squared_correlation(one: Tensor, two: Tensor) -> Tensor:
    """Pearson's correlation over the batch, squared; 0 where either side is constant.  A scalar.

    Centred first, in float64; the small constant keeps the gradient finite and nothing else (values of order 1).
    """
    one, two = one.double() - one.double().mean(), two.double() - two.double().mean()
    return (torch.dot(one, two).square() / ((one.square().sum() + 1e-8) * (two.square().sum() + 1e-8))).float()


def half_squares(*tiles: Tensor, counts: Tensor | None = None) -> Tensor:
    """`½ Σ ‖row‖²` over all rows (cut into tiles of columns), each as often as it counts.  A scalar."""
    return _HalfSquares.apply(counts, *tiles)  # type: ignore[no-any-return, no-untyped-call]  # torch leaves it untyped


class _HalfSquares(torch.autograd.Function):
    """One pass over the rows each way, where autograd's own would take four."""

    @staticmethod
    def forward(ctx: Any, counts: Tensor | None, *tiles: Tensor) -> Tensor:
        ctx.save_for_backward(counts, *tiles)
        squares = torch.linalg.vecdot(tiles[0], tiles[0])
        for tile in tiles[1:]:
            squares += torch.linalg.vecdot(tile, tile)
        return 0.5 * (squares.sum() if counts is None else torch.dot(squares, counts))

    @staticmethod
    def backward(ctx: Any, by_sum: Tensor) -> tuple[Tensor | None, ...]:
        counts, *tiles = ctx.saved_tensors
        weight = by_sum if counts is None else (by_sum * counts)[:, None]
        return None, *(weight * tile for tile in tiles)
