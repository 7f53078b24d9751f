"""Inner products of read-out rows with gradients written by hand, for losses that score pairs instead of triples."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from dpaa.graph.kernels import add_rows_
from dpaa.graph.tiles import UNIT, Columns, unit_sums


class Dots(torch.autograd.Function):
    """`u·i` of pairs; the gradient goes straight to the distinct rows."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, left: Tensor, right: Tensor, columns: Columns) -> Tensor:
        ctx.one, ctx.other = rows.index_select(0, left), rows.index_select(0, right)
        ctx.n_rows = len(rows)
        ctx.save_for_backward(left, right)
        return columns.sum(unit_sums(ctx.one * ctx.other))

    @staticmethod
    def backward(ctx: Any, by_dot: Tensor) -> tuple[Tensor, None, None, None]:
        left, right = ctx.saved_tensors
        by_right, by_left, ctx.one, ctx.other = ctx.one, ctx.other, None, None  # there is one backward pass
        by_rows = by_right.new_zeros(ctx.n_rows, by_right.shape[1])
        add_rows_(by_rows, left, by_left.mul_(by_dot[:, None]))
        return add_rows_(by_rows, right, by_right.mul_(by_dot[:, None])), None, None, None


class Projections(torch.autograd.Function):
    """The same for one vector, whose gradient is gathered from all columns."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, index: Tensor, vector: Tensor, columns: Columns) -> Tensor:
        own = columns.cut(vector[None])
        ctx.columns, ctx.n_rows, ctx.taken = columns, len(rows), rows.index_select(0, index)
        ctx.save_for_backward(index, own)
        return columns.sum(unit_sums(ctx.taken * own))

    @staticmethod
    def backward(ctx: Any, by_product: Tensor) -> tuple[Tensor, None, Tensor, None]:
        (index, own), taken, ctx.taken = ctx.saved_tensors, ctx.taken, None
        by_rows = taken.new_zeros(ctx.n_rows, taken.shape[1])
        add_rows_(by_rows, index, by_product[:, None] * own)
        # Unit by unit: how torch sums a column depends on the number of columns.
        units = (unit.contiguous().sum(dim=0) for unit in torch.split(taken.mul_(by_product[:, None]), UNIT, dim=1))
        return by_rows, None, ctx.columns.gathered(torch.cat(list(units))[None])[0], None
