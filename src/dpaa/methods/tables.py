"""The trained tables of a graph method: forward from a batch to the rows of its loss, and backward to gradients.

There are two ways: gradients written by hand over tiles of columns, and, for `WholeTable` methods, automatic
differentiation through the method's `table_readout`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor
from torch.nn.functional import softplus

from dpaa.graph._layers import Dots, Projections
from dpaa.graph.kernels import add_rows_
from dpaa.graph.propagation import Propagation, Selection
from dpaa.graph.tiles import Columns, unit_sums
from dpaa.methods._trained import BaseTables

if TYPE_CHECKING:
    from dpaa.methods.graph_method import WholeTable


@dataclass(frozen=True)
class Batch:
    """Triples of a user, an item the user took and an item the user did not take.

    Parameters
    ----------
    users, positive, negative : (batch,) int64 indices of users and of items
    more_users, more_items : further nodes whose rows the loss needs, each (any,) int64
    epoch, number : of the epoch and within it: random draws of a batch depend on the seed and these alone
    """

    users: Tensor
    positive: Tensor
    negative: Tensor
    more_users: tuple[Tensor, ...] = field(default=(), kw_only=True)
    more_items: tuple[Tensor, ...] = field(default=(), kw_only=True)
    epoch: int = field(default=0, kw_only=True)
    number: int = field(default=0, kw_only=True)

    def __len__(self) -> int:
        return len(self.users)

    def nodes(self, n_users: int) -> Tensor:
        """Nodes whose rows the loss needs, in the order in which `split` returns them.  (nodes,)."""
        users = [self.users, self.positive + n_users, self.negative + n_users, *self.more_users]
        return torch.cat(users + [items + n_users for items in self.more_items])

    def split(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Rows of `nodes`, or their `index`, as those of users, positive, negative, more users and more items."""
        size = len(self)
        return torch.split(rows, [size, size, size, *map(len, self.more_users), *map(len, self.more_items)])


class Rows:
    """Read-out and layer-0 rows of a batch's nodes, repeats included: all that a loss sees of the tables.

    Each distinct node is gathered once, as a leaf of autograd, so that autograd never sees a whole table; the gradient
    through the layers is written by hand.  Where other processes hold other columns, `margins`, `dots`, `projections`
    and `half_squares` exchange a number per pair; `readout` and `ego` gather whole rows.

    Parameters
    ----------
    selection : the distinct nodes
    nodes : the batch's nodes, repeats included
    readout : (distinct, d) read-out rows
    ego : layer-0 rows of the distinct nodes, tile by tile
    columns : which columns these are, where other processes hold the rest
    """

    def __init__(
        self, selection: Selection, nodes: Tensor, readout: Tensor, ego: list[Tensor], columns: Columns | None = None
    ) -> None:
        self.selection = selection
        self.index = selection.index.index_select(0, nodes).long()
        """(nodes,) int64 index of each node among the distinct ones; `batch.split` takes it apart."""
        self._columns = columns or Columns(readout.shape[1])
        self._distinct = readout if readout.requires_grad else readout.requires_grad_()
        self._ego_tiles = [tile.requires_grad_() for tile in ego]

    @cached_property
    def readout(self) -> Tensor:
        """Read-out rows, (nodes, d); gathered on first use."""
        return self._columns.whole(self._distinct).index_select(0, self.index)

    @cached_property
    def ego(self) -> Tensor:
        """Layer-0 rows, (nodes, d); gathered on first use."""
        return self.distinct_ego.index_select(0, self.index)

    @cached_property
    def distinct_ego(self) -> Tensor:
        """Layer-0 rows of the distinct nodes, (distinct, d), users first."""
        tiles = self._ego_tiles
        return self._columns.whole(tiles[0] if len(tiles) == 1 else torch.cat(tiles, dim=1))

    def dots(self, left: Tensor, right: Tensor) -> Tensor:
        """Inner products of the read-out rows with these `index` values, pair by pair.  (pairs,)."""
        return Dots.apply(self._distinct, left, right, self._columns)  # type: ignore[no-any-return, no-untyped-call]

    def projections(self, index: Tensor, vector: Tensor) -> Tensor:
        """Inner products of the read-out rows with these `index` values and one parameter, (d,).  (index,)."""
        return Projections.apply(self._distinct, index, vector, self._columns)  # type: ignore[no-any-return, no-untyped-call]

    def margins(self, n: int) -> Tensor:
        """`s_ui − s_uj` of n triples, whose nodes come first.  (n,)."""
        return _Margins.apply(self._distinct, self.index[: 3 * n], self._columns)  # type: ignore[no-any-return, no-untyped-call]

    def half_squares(self, n: int) -> Tensor:
        """`½ Σ ‖row‖²` over the first n layer-0 rows, each distinct one times its count."""
        # A node that occurs n times in a batch is penalised n times, as if every triple were a step of its
        # own.
        counts = self._distinct.new_zeros(len(self.selection))
        counts.scatter_add_(0, self.index[:n], counts.new_ones(1).expand(n))
        return _HalfSquares.apply(self._columns, counts, *self._ego_tiles)  # type: ignore[no-any-return, no-untyped-call]

    def tile_gradient(self, propagation: Propagation, number: int, columns: slice) -> Tensor:
        """Gradient in one tile of layer 0, after `backward` on the loss.  (n_nodes, tile columns)."""
        by_readout = _received(self._distinct)[:, columns]
        return propagation.gradient_tile(self.selection, by_readout, _received(self._ego_tiles[number]))


class TableRows(Rows):
    """Rows of a read-out that torch differentiates through the whole table."""

    def __init__(self, selection: Selection, nodes: Tensor, readout: Tensor, table: Tensor, ego: list[Tensor]) -> None:
        super().__init__(selection, nodes, readout, ego)
        self.table = table
        """All of layer 0, a leaf of autograd: a loss may compute further views of it."""

    def tile_gradient(self, propagation: Propagation, number: int, columns: slice) -> Tensor:
        """Columns of the table's gradient, and what layer 0 received itself."""
        gradient = _received(self.table)[:, columns].clone(memory_format=torch.contiguous_format)
        return self.selection.add_(gradient, _received(self._ego_tiles[number]))


def _received(leaf: Tensor) -> Tensor:
    return torch.zeros_like(leaf) if leaf.grad is None else leaf.grad


class _Margins(torch.autograd.Function):
    """`u·(i − j)` in half the passes of autograd's own: the gradient goes straight to the distinct rows."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, index: Tensor, columns: Columns) -> Tensor:
        users, positive, negative = index.view(3, -1)
        ctx.user = rows.index_select(0, users)
        ctx.difference = rows.index_select(0, positive).sub_(rows.index_select(0, negative))
        ctx.n_rows = len(rows)
        ctx.save_for_backward(index)
        return columns.sum(unit_sums(ctx.user * ctx.difference))

    @staticmethod
    def backward(ctx: Any, by_margin: Tensor) -> tuple[Tensor, None, None]:
        users, positive, negative = ctx.saved_tensors[0].view(3, -1)
        by_item, by_user, ctx.user, ctx.difference = ctx.user, ctx.difference, None, None  # there is one backward pass
        by_rows = by_item.new_zeros(ctx.n_rows, by_item.shape[1])
        add_rows_(by_rows, positive, by_item.mul_(by_margin[:, None]))
        add_rows_(by_rows, users, by_user.mul_(by_margin[:, None]))
        return add_rows_(by_rows, negative, by_item.neg_()), None, None


class _HalfSquares(torch.autograd.Function):
    """One pass over the rows each way, where autograd's own would take four."""

    @staticmethod
    def forward(ctx: Any, columns: Columns, counts: Tensor, *tiles: Tensor) -> Tensor:
        ctx.save_for_backward(counts, *tiles)
        squares = [part.contiguous() for tile in tiles for part in unit_sums(tile.square())]
        return 0.5 * columns.sum([torch.dot(part, counts) for part in squares])

    @staticmethod
    def backward(ctx: Any, by_sum: Tensor) -> tuple[Tensor | None, ...]:
        counts, *tiles = ctx.saved_tensors
        weight = (by_sum * counts)[:, None]
        return None, None, *(weight * tile for tile in tiles)


def margins(user: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
    """`s_ui − s_uj` with `s` the inner product.  (batch,)."""
    return torch.sum(user * (positive - negative), dim=1)


def scores(user: Tensor, item: Tensor) -> Tensor:
    """Inner products row by row.  (batch,)."""
    return torch.sum(user * item, dim=1)


def cross_entropy(positive: Tensor, negative: Tensor) -> Tensor:
    """`mean[ −log σ(s_ui) − log(1 − σ(s_uj)) ]` from scores.  A scalar."""
    return (softplus(-positive) + softplus(negative)).mean()


class Tables(BaseTables):
    """Layer 0 in tiles of columns, the propagation over it, and what is trained besides: one step there and back."""

    def forward(self, batch: Batch) -> Rows:
        """Propagate, and gather the batch's rows for the loss."""
        method, nodes = self.method, batch.nodes(self.graph.n_users)
        if not method._whole_table:
            selection = Selection(self.graph, nodes, whole_from=method._whole_from)
            return Rows(selection, nodes, *self.propagation.rows_of(self.ego, selection), self.columns)
        selection = Selection(self.graph, nodes, whole_from=2.0)  # never whole: its rows are copies anyway
        table = self.ego.rows().requires_grad_()
        ego = [tile.index_select(0, selection.nodes) for tile in self.ego.tiles]
        readout = cast("WholeTable", method).table_readout(table, batch).index_select(0, selection.nodes)
        return TableRows(selection, nodes, readout, table, ego)

    def tile_gradient(self, rows: Rows, number: int) -> Tensor:
        """Gradient of the loss in one tile of layer 0, after `backward` on the loss."""
        return rows.tile_gradient(self.propagation, number, self.ego.columns[number])
