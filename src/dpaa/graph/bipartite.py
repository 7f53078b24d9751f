"""The training pairs as a graph: users first, then items, every edge stored both ways in one square CSR matrix."""

from __future__ import annotations

from dataclasses import dataclass, field
from weakref import ref

import numpy as np
import torch
from torch import Tensor

from dpaa.data.pairs import Pairs
from dpaa.errors import InputError


@dataclass(frozen=True)
class EdgeWeights:
    """How loudly each interaction speaks: the whole coefficient of a message, degree scaling included."""

    to_user: Tensor
    """What the user hears from the item, (n_edges,)."""
    to_item: Tensor | None = None
    """What the item hears from the user; None where both directions carry the same weight."""

    @property
    def back(self) -> Tensor:
        """The weights of the way user → item, (n_edges,)."""
        return self.to_user if self.to_item is None else self.to_item


@dataclass(frozen=True)
class BipartiteGraph:
    """Edges sorted by user, then item.  Node v < n_users is a user, node n_users + i is item i."""

    n_users: int
    n_items: int
    edge_user: Tensor
    """(n_edges,) int32, ascending."""
    edge_item: Tensor
    """(n_edges,) int32, ascending within a user."""
    edge_count: Tensor
    """(n_edges,) float32: how often the pair occurred; 1 unless duplicates were kept."""
    user_degree: Tensor
    """(n_users,) float32: sum of the counts of a user's edges."""
    item_degree: Tensor
    """(n_items,) float32."""
    indptr: Tensor
    """(n_nodes + 1,) int32: slots of node v are indptr[v] … indptr[v+1]−1."""
    neighbours: Tensor
    """(2 · n_edges,) int32 node indices: first the users' rows in edge order, then the items' rows."""
    by_item: Tensor
    """(n_edges,) int32: the edges in the order of the items' rows."""
    _symmetric: list[ref[EdgeWeights]] = field(default_factory=list, init=False, repr=False, compare=False)

    @classmethod
    def from_pairs(cls, pairs: Pairs, n_users: int, n_items: int, device: str | torch.device = "cpu") -> BipartiteGraph:
        """Build from distinct pairs sorted by user, then item."""
        if 2 * len(pairs) >= 2**31 or n_users + n_items >= 2**31:
            raise InputError(f"the graph has {len(pairs):,} edges; at most {2**30 - 1:,} fit its 32-bit indices")
        by_item = np.argsort(pairs.item, kind="stable").astype(np.int32)
        user_slots = np.bincount(pairs.user, minlength=n_users)
        item_slots = np.bincount(pairs.item, minlength=n_items)
        indptr = np.concatenate([[0], np.cumsum(np.concatenate([user_slots, item_slots]))]).astype(np.int32)
        neighbours = np.concatenate([pairs.item + np.int32(n_users), pairs.user[by_item]], dtype=np.int32)
        count = None if pairs.count is None else pairs.count.astype(np.float32)

        def on_device(array: np.ndarray) -> Tensor:
            return torch.from_numpy(np.require(array, requirements=["C", "W"])).to(device)  # the pairs' own, not copies

        return cls(
            n_users=n_users,
            n_items=n_items,
            edge_user=on_device(pairs.user.astype(np.int32, copy=False)),
            edge_item=on_device(pairs.item.astype(np.int32, copy=False)),
            edge_count=torch.ones(1, device=device).expand(len(pairs)) if count is None else on_device(count),
            user_degree=on_device(np.bincount(pairs.user, count, minlength=n_users).astype(np.float32)),
            item_degree=on_device(np.bincount(pairs.item, count, minlength=n_items).astype(np.float32)),
            indptr=on_device(indptr),
            neighbours=on_device(neighbours),
            by_item=on_device(by_item),
        )

    def __repr__(self) -> str:
        return f"BipartiteGraph({self.n_users:,} users × {self.n_items:,} items, {self.n_edges:,} edges)"

    @property
    def device(self) -> torch.device:
        """Where the edges lie."""
        return self.edge_user.device

    @property
    def n_edges(self) -> int:
        """Distinct training pairs."""
        return len(self.edge_user)

    @property
    def n_nodes(self) -> int:
        """Users and items together."""
        return self.n_users + self.n_items

    def symmetric_weights(self) -> EdgeWeights:
        """LightGCN's `1 / √(d_u d_i)` (times the count of a repeated pair).  (n_edges,).

        One object while anybody holds it (so layers share their weights), made again afterwards.
        """
        held = self._symmetric[0]() if self._symmetric else None
        if held is not None:
            return held
        scale = self.user_degree.rsqrt().index_select(0, self.edge_user)
        scale *= self.item_degree.rsqrt().index_select(0, self.edge_item)
        weights = EdgeWeights(scale.mul_(self.edge_count))
        self._symmetric[:] = [ref(weights)]
        return weights

    def slot_values(self, weights: EdgeWeights) -> Tensor:
        """Edge weights in the order of the matrix's slots: row v holds what v hears.  (2 · n_edges,)."""
        return self._in_slots(weights.to_user, weights.back)

    def transposed_slot_values(self, weights: EdgeWeights) -> Tensor:
        """The same for the transposed matrix, whose pattern is the same.  (2 · n_edges,)."""
        return self._in_slots(weights.back, weights.to_user)

    def _in_slots(self, users: Tensor, items: Tensor) -> Tensor:
        """Numbers per edge for the users' rows and for the items' rows, each written to its place once."""
        slots = users.new_empty(2 * self.n_edges)
        slots[: self.n_edges] = users
        torch.index_select(items, 0, self.by_item, out=slots[self.n_edges :])
        return slots
