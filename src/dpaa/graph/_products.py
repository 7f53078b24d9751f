"""Inner products of rows whose columns may lie in several processes: pair by pair, with one vector, along all edges."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from dpaa.graph.bipartite import BipartiteGraph
from dpaa.graph.kernels import add_rows_
from dpaa.graph.tiles import UNIT, Columns, TiledTable, unit_sums

EDGE_BLOCK = 16_384
"""Edges whose rows are gathered at once: a block of a tile stays in cache between the product and its sum."""


@torch.no_grad()
def edge_cosines(graph: BipartiteGraph, table: TiledTable, columns: Columns | None = None) -> Tensor:
    """`cos(e_u, e_i)` for every edge, in [−1, 1]; 0 where a vector is zero.

    Parameters
    ----------
    graph : the edges
    table : (n_nodes, d) vectors of users, then items
    columns : which columns these are, where other processes hold the rest

    Returns
    -------
    (n_edges,) cosines
    """
    columns = columns or Columns(table.columns[-1].stop)
    squares = columns.joined([one for tile in table.tiles for one in unit_sums(tile.square())])
    norms = columns.over_all(squares).sqrt()
    items = graph.edge_item + graph.n_users
    parts = norms.new_empty(len(squares), graph.n_edges)
    for first in range(0, graph.n_edges, EDGE_BLOCK):
        part = slice(first, first + EDGE_BLOCK)
        user, item = graph.edge_user[part], items[part]
        products = [unit_sums(tile.index_select(0, user).mul_(tile.index_select(0, item))) for tile in table.tiles]
        parts[:, part] = columns.joined([one for tile in products for one in tile])
    dots = columns.over_all(parts)
    scale = norms.index_select(0, graph.edge_user).mul_(norms.index_select(0, items))
    return torch.where(scale > 0, dots / scale, torch.zeros_like(dots)).clamp_(-1.0, 1.0)


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
