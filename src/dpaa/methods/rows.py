"""A batch, and the rows of the tables that its loss works on, with hand-written gradients of the common terms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softplus

from dpaa.graph.columns import UNIT, Columns, unit_sums
from dpaa.graph.kernels import add_rows_
from dpaa.graph.propagation import Propagation, Selection


@dataclass(frozen=True)
class Batch:
    """Triples of a user, an item the user took and an item the user did not take; each (batch,) int64."""

    users: Tensor
    positive: Tensor
    negative: Tensor
    epoch: int = field(default=0, kw_only=True)
    number: int = field(default=0, kw_only=True)
    """Index within the epoch: random draws of a batch depend on seed, epoch and this number alone."""

    def __len__(self) -> int:
        return len(self.users)

    def nodes(self, n_users: int) -> Tensor:
        """Nodes whose rows the loss needs, in the order in which `split` takes them apart.  (3 · batch,)."""
        return torch.cat([self.users, self.positive + n_users, self.negative + n_users])

    def split(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Rows of `nodes` (or their `places`) as those of users, positive and negative items, each (batch, …)."""
        return torch.split(rows, len(self))


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
        self.places = selection.place.index_select(0, nodes).long()
        """(nodes,) int64 index of each node among the distinct ones; `batch.split` takes it apart."""
        self._columns = columns or Columns(readout.shape[1])
        self._distinct = readout if readout.requires_grad else readout.requires_grad_()
        self._ego_tiles = [tile.requires_grad_() for tile in ego]

    @cached_property
    def readout(self) -> Tensor:
        """Read-out rows, (nodes, d); gathered on first use."""
        return self._columns.whole(self._distinct).index_select(0, self.places)

    @cached_property
    def ego(self) -> Tensor:
        """Layer-0 rows, (nodes, d); gathered on first use."""
        return self._distinct_ego.index_select(0, self.places)

    @cached_property
    def _distinct_ego(self) -> Tensor:
        tiles = self._ego_tiles
        return self._columns.whole(tiles[0] if len(tiles) == 1 else torch.cat(tiles, dim=1))

    def dots(self, left: Tensor, right: Tensor) -> Tensor:
        """Inner products of the read-out rows at these `places`, pair by pair.  (pairs,)."""
        return dots_of_rows(self._distinct, left, right, self._columns)

    def projections(self, places: Tensor, vector: Tensor) -> Tensor:
        """Inner products of the read-out rows at these `places` with a parameter, (d,).  (places,)."""
        return projections_of_rows(self._distinct, places, vector, self._columns)

    def of_ego(self, function: Callable[[Tensor], Tensor]) -> Tensor:
        """A function of each layer-0 row alone, such as a network, computed once per distinct node.  (nodes, …)."""
        if self.selection.whole:  # the distinct nodes would be all of the graph's
            return function(self.ego)
        return function(self._distinct_ego).index_select(0, self.places)

    def of_item_ego(self, function: Callable[[Tensor], Tensor], n: int) -> Tensor:
        """The same of the items alone, which follow the n users.  (nodes − n, …)."""
        if self.selection.whole:
            return function(self.ego[n:])
        first = self.selection.n_users
        return function(self._distinct_ego[first:]).index_select(0, self.places[n:] - first)

    def margins(self, n: int) -> Tensor:
        """`s_ui − s_uj` of n triples, whose nodes come first.  (n,)."""
        return margins_of_rows(self._distinct, self.places[: 3 * n], self._columns)

    def half_squares(self, n: int) -> Tensor:
        """`½ Σ ‖row‖²` over the first n layer-0 rows, each distinct one times its count."""
        counts = self._distinct.new_zeros(len(self.selection))
        counts.scatter_add_(0, self.places[:n], counts.new_ones(1).expand(n))
        return half_squares(*self._ego_tiles, counts=counts, columns=self._columns)

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
        del propagation
        gradient = _received(self.table)[:, columns].clone(memory_format=torch.contiguous_format)
        return self.selection.add_(gradient, _received(self._ego_tiles[number]))


def _received(leaf: Tensor) -> Tensor:
    return torch.zeros_like(leaf) if leaf.grad is None else leaf.grad


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
