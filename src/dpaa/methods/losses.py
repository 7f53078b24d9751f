"""Losses as pure functions of the batch's rows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softplus

from dpaa.graph.columns import UNIT, Columns, unit_sums
from dpaa.kernels.add_rows import add_rows_


def margins(user: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
    """`s_ui − s_uj` with `s` the inner product.  (batch,)."""
    return torch.sum(user * (positive - negative), dim=1)


def bpr(user: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
    """Bayesian personalised ranking, `mean softplus(s_uj − s_ui)`.  A scalar."""
    return softplus(-margins(user, positive, negative)).mean()


def margins_of_rows(rows: Tensor, place: Tensor, columns: Columns | None = None) -> Tensor:
    """`margins` of the rows at these places: those of the users, then of positive and of negative items.  (batch,).

    Where the rows are cut, `columns` says which columns of them are here.
    """
    columns = columns or Columns(rows.shape[1])
    return _Margins.apply(rows, place, columns)  # type: ignore[no-any-return, no-untyped-call]  # torch leaves it untyped


class _Margins(torch.autograd.Function):
    """Half the passes of autograd's own: the gradient goes straight to the distinct rows."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, place: Tensor, columns: Columns) -> Tensor:
        users, positive, negative = place.view(3, -1)
        ctx.user = rows.index_select(0, users)
        ctx.difference = rows.index_select(0, positive).sub_(rows.index_select(0, negative))
        ctx.n_rows = len(rows)
        ctx.save_for_backward(place)
        return columns.sum(unit_sums(ctx.user * ctx.difference))

    @staticmethod
    def backward(ctx: Any, by_margin: Tensor) -> tuple[Tensor, None, None]:
        users, positive, negative = ctx.saved_tensors[0].view(3, -1)
        by_item, by_user, ctx.user, ctx.difference = ctx.user, ctx.difference, None, None  # there is one way back
        by_rows = by_item.new_zeros(ctx.n_rows, by_item.shape[1])
        add_rows_(by_rows, positive, by_item.mul_(by_margin[:, None]))
        add_rows_(by_rows, users, by_user.mul_(by_margin[:, None]))
        return add_rows_(by_rows, negative, by_item.neg_()), None, None


def dots_of_rows(rows: Tensor, left: Tensor, right: Tensor, columns: Columns) -> Tensor:
    """Inner products of the rows at these places, pair by pair.  (pairs,)."""
    return _Dots.apply(rows, left, right, columns)  # type: ignore[no-any-return, no-untyped-call]


class _Dots(torch.autograd.Function):
    """The same for pairs instead of triples."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, left: Tensor, right: Tensor, columns: Columns) -> Tensor:
        ctx.one, ctx.other = rows.index_select(0, left), rows.index_select(0, right)
        ctx.n_rows = len(rows)
        ctx.save_for_backward(left, right)
        return columns.sum(unit_sums(ctx.one * ctx.other))

    @staticmethod
    def backward(ctx: Any, by_dot: Tensor) -> tuple[Tensor, None, None, None]:
        left, right = ctx.saved_tensors
        by_right, by_left, ctx.one, ctx.other = ctx.one, ctx.other, None, None  # there is one way back
        by_rows = by_right.new_zeros(ctx.n_rows, by_right.shape[1])
        add_rows_(by_rows, left, by_left.mul_(by_dot[:, None]))
        return add_rows_(by_rows, right, by_right.mul_(by_dot[:, None])), None, None, None


def projections_of_rows(rows: Tensor, place: Tensor, vector: Tensor, columns: Columns) -> Tensor:
    """Inner products of the rows at these places with one vector, which is whole.  (places,)."""
    return _Projections.apply(rows, place, vector, columns)  # type: ignore[no-any-return, no-untyped-call]


class _Projections(torch.autograd.Function):
    """The same for one vector; its gradient is put together from everybody's columns."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, place: Tensor, vector: Tensor, columns: Columns) -> Tensor:
        own = columns.cut(vector[None])
        ctx.columns, ctx.n_rows, ctx.taken = columns, len(rows), rows.index_select(0, place)
        ctx.save_for_backward(place, own)
        return columns.sum(unit_sums(ctx.taken * own))

    @staticmethod
    def backward(ctx: Any, by_product: Tensor) -> tuple[Tensor, None, Tensor, None]:
        (place, own), taken, ctx.taken = ctx.saved_tensors, ctx.taken, None
        by_rows = taken.new_zeros(ctx.n_rows, taken.shape[1])
        add_rows_(by_rows, place, by_product[:, None] * own)
        # Unit by unit: how torch adds up a column depends on how many stand beside it.
        units = (unit.contiguous().sum(dim=0) for unit in torch.split(taken.mul_(by_product[:, None]), UNIT, dim=1))
        return by_rows, None, ctx.columns.gathered(torch.cat(list(units))[None])[0], None


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


def half_squares(*tiles: Tensor, counts: Tensor | None = None, columns: Columns | None = None) -> Tensor:
    """`½ Σ ‖row‖²` over all rows (cut into tiles of columns), each as often as it counts.  A scalar."""
    columns = columns or Columns(sum(tile.shape[1] for tile in tiles))
    return _HalfSquares.apply(columns, counts, *tiles)  # type: ignore[no-any-return, no-untyped-call]


class _HalfSquares(torch.autograd.Function):
    """One pass over the rows each way, where autograd's own would take four."""

    @staticmethod
    def forward(ctx: Any, columns: Columns, counts: Tensor | None, *tiles: Tensor) -> Tensor:
        ctx.save_for_backward(counts, *tiles)
        squares = [part.contiguous() for tile in tiles for part in unit_sums(tile.square())]
        return 0.5 * columns.sum([part.sum() if counts is None else torch.dot(part, counts) for part in squares])

    @staticmethod
    def backward(ctx: Any, by_sum: Tensor) -> tuple[Tensor | None, ...]:
        counts, *tiles = ctx.saved_tensors
        weight = by_sum if counts is None else (by_sum * counts)[:, None]
        return None, None, *(weight * tile for tile in tiles)
