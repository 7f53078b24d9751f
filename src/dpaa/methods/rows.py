"""What a loss works on: a batch, and its rows as a small autograd graph whose leaves' gradients reach the tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from dpaa.graph.columns import Columns
from dpaa.graph.propagation import Propagation
from dpaa.graph.selection import Selection
from dpaa.methods.losses import (
    dots_of_rows,
    half_squares,
    margins,
    margins_of_rows,
    projections_of_rows,
    scores,
)


@dataclass(frozen=True)
class Batch:
    """Triples: user, an item the user took, an item the user did not take; each (batch,) int64."""

    users: Tensor
    positive: Tensor
    negative: Tensor
    epoch: int = field(default=0, kw_only=True)
    number: int = field(default=0, kw_only=True)
    """Its place in the epoch: what is drawn for a batch depends on seed, epoch and place alone."""

    def __len__(self) -> int:
        return len(self.users)

    def nodes(self, n_users: int) -> Tensor:
        """The nodes whose rows the loss needs, in the order that `split` takes them apart.  (3 · batch,)."""
        return torch.cat([self.users, self.positive + n_users, self.negative + n_users])

    def split(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Rows of `nodes` (or their `places`) as those of users, positive and negative items, each (batch, …)."""
        return torch.split(rows, len(self))


class Rows:
    """Read-out and ego rows of a batch's nodes, repeats included: all that a loss sees of the tables.

    Where columns lie in several processes, `margins`, `dots` and `half_squares` send numbers, whole rows are gathered.
    """

    def __init__(self, readout: Tensor, ego: Tensor) -> None:
        self._readout, self._ego = readout, ego

    @property
    def readout(self) -> Tensor:
        """Read-out rows, (nodes, d)."""
        return self._readout

    @property
    def ego(self) -> Tensor:
        """Layer-0 rows, (nodes, d)."""
        return self._ego

    @property
    def places(self) -> Tensor:
        """What `dots` takes in place of rows, (nodes,) int64; `batch.split` takes it apart."""
        return torch.arange(len(self.readout), device=self.readout.device)

    def dots(self, left: Tensor, right: Tensor) -> Tensor:
        """Inner products of the read-out rows at these places, pair by pair.  (pairs,)."""
        return scores(self.readout[left], self.readout[right])

    def projections(self, places: Tensor, vector: Tensor) -> Tensor:
        """Inner products of the read-out rows at these places with a parameter, (d,).  (places,)."""
        return self.readout[places] @ vector

    def of_ego(self, function: Callable[[Tensor], Tensor]) -> Tensor:
        """A function of layer-0 rows that takes each row alone: a network, say.  (nodes, …)."""
        return function(self.ego)

    def of_item_ego(self, function: Callable[[Tensor], Tensor], n: int) -> Tensor:
        """The same of all nodes but the first n, which are the users.  (nodes − n, …)."""
        return function(self.ego[n:])

    def margins(self, n: int) -> Tensor:
        """`s_ui − s_uj` of n triples, whose nodes come first.  (n,)."""
        return margins(*torch.split(self.readout[: 3 * n], n))

    def half_squares(self, n: int) -> Tensor:
        """`½ Σ ‖row‖²` over the first n ego rows."""
        return half_squares(self.ego[:n])

    def tile_gradient(self, propagation: Propagation, number: int, columns: slice) -> Tensor:
        """Gradient in one tile of the table, after `backward` on the loss.  (n_nodes, tile columns)."""
        raise NotImplementedError


class DistinctRows(Rows):
    """Rows gathered once for each distinct node: (distinct, d) of the read-out, and of layer 0 tile by tile.

    The rows of layer 0 are leaves of autograd.  `columns` says which columns these are, where others hold the rest.
    """

    def __init__(
        self, selection: Selection, nodes: Tensor, readout: Tensor, ego: list[Tensor], columns: Columns | None = None
    ) -> None:
        self.selection = selection
        self._columns = columns or Columns(readout.shape[1])
        self._place = selection.place.index_select(0, nodes).long()
        self._distinct = readout
        self._ego_tiles = [tile.requires_grad_() for tile in ego]
        self._asked: dict[str, Tensor] = {}

    def _once(self, name: str, make: Callable[[], Tensor]) -> Tensor:
        """Made once, and only where a loss asks for it: others may have to be asked for their columns."""
        if name not in self._asked:
            self._asked[name] = make()
        return self._asked[name]

    @property
    def readout(self) -> Tensor:
        """Read-out rows, (nodes, d); gathered once, and only where a loss asks for them."""
        return self._once("readout", lambda: self._columns.whole(self._distinct).index_select(0, self._place))

    @property
    def ego(self) -> Tensor:
        """Layer-0 rows, (nodes, d); gathered once, and only where a loss asks for them."""
        return self._once("ego", lambda: self._distinct_ego.index_select(0, self._place))

    @property
    def _distinct_ego(self) -> Tensor:
        return self._once("distinct ego", lambda: self._columns.whole(_side_by_side(self._ego_tiles)))

    @property
    def places(self) -> Tensor:
        """Where the nodes stand among the distinct ones, (nodes,) int64."""
        return self._place

    def dots(self, left: Tensor, right: Tensor) -> Tensor:
        """Inner products of the distinct rows at these places, pair by pair.  (pairs,)."""
        return dots_of_rows(self._distinct, left, right, self._columns)

    def projections(self, places: Tensor, vector: Tensor) -> Tensor:
        """Inner products of the distinct rows at these places with a parameter, (d,).  (places,)."""
        return projections_of_rows(self._distinct, places, vector, self._columns)

    def of_ego(self, function: Callable[[Tensor], Tensor]) -> Tensor:
        """A function of layer-0 rows, computed once for each distinct node (or as often as it occurs).  (nodes, …)."""
        if self.selection.whole:  # the distinct ones would be all of the graph's
            return super().of_ego(function)
        return function(self._distinct_ego).index_select(0, self._place)

    def of_item_ego(self, function: Callable[[Tensor], Tensor], n: int) -> Tensor:
        """The same of the items, which follow the n users.  (nodes − n, …)."""
        if self.selection.whole:
            return super().of_item_ego(function, n)
        first = self.selection.n_users
        return function(self._distinct_ego[first:]).index_select(0, self._place[n:] - first)

    def margins(self, n: int) -> Tensor:
        """`s_ui − s_uj` of n triples, from the distinct rows.  (n,)."""
        return margins_of_rows(self._distinct, self._place[: 3 * n], self._columns)

    def half_squares(self, n: int) -> Tensor:
        """`½ Σ ‖row‖²` over the first n ego rows, each distinct one times its count."""
        counts = self._distinct.new_zeros(len(self.selection))
        counts.scatter_add_(0, self._place[:n], counts.new_ones(1).expand(n))
        return half_squares(*self._ego_tiles, counts=counts, columns=self._columns)

    def by_ego(self, number: int) -> Tensor:
        """What the distinct rows of layer 0 received from `loss.backward()`, in one tile.  (distinct, tile columns)."""
        return _received(self._ego_tiles[number])


class GatheredRows(DistinctRows):
    """Distinct rows that are all leaves of autograd.

    The loss is free in form, and autograd never sees a whole table: the rest of the way is written by hand.
    """

    def __init__(
        self, selection: Selection, nodes: Tensor, readout: Tensor, ego: list[Tensor], columns: Columns | None = None
    ) -> None:
        super().__init__(selection, nodes, readout.requires_grad_(), ego, columns)

    def tile_gradient(self, propagation: Propagation, number: int, columns: slice) -> Tensor:
        """Back through the layers."""
        return propagation.gradient_tile(self.selection, _received(self._distinct)[:, columns], self.by_ego(number))


class TableRows(DistinctRows):
    """Rows of a read-out that is a function of a whole table, in which its gradient is collected."""

    def __init__(self, selection: Selection, nodes: Tensor, readout: Tensor, table: Tensor, ego: list[Tensor]) -> None:
        super().__init__(selection, nodes, readout, ego)
        self.table = table
        """All of layer 0, a leaf of autograd: a loss may make further views of it."""

    def tile_gradient(self, propagation: Propagation, number: int, columns: slice) -> Tensor:
        """The columns of the table's gradient, and what layer 0 received itself."""
        del propagation
        gradient = _received(self.table)[:, columns].clone(memory_format=torch.contiguous_format)
        return self.selection.add_(gradient, self.by_ego(number))


def _side_by_side(tiles: list[Tensor]) -> Tensor:
    return tiles[0] if len(tiles) == 1 else torch.cat(tiles, dim=1)


def _received(leaf: Tensor) -> Tensor:
    return torch.zeros_like(leaf) if leaf.grad is None else leaf.grad
