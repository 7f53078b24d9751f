"""The training pairs as a graph: users first, then items, every edge stored both ways in one square CSR matrix."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from dpaa.data.attributes import ItemAttributes
from dpaa.data.pairs import Pairs
from dpaa.errors import InputError


@dataclass(frozen=True)
class EdgeWeights:
    """Weights of the messages along every edge, degree scaling included.

    Parameters
    ----------
    to_user : (n_edges,) weights of the messages from item to user
    to_item : (n_edges,) those from user to item; None where both directions have the same
    """

    to_user: Tensor
    to_item: Tensor | None = None

    @property
    def back(self) -> Tensor:
        """Weights from user to item, (n_edges,)."""
        return self.to_user if self.to_item is None else self.to_item

    @property
    def transposed(self) -> EdgeWeights:
        """The weights of the transposed matrix, whose pattern is the same: both directions exchanged."""
        return EdgeWeights(self.back, self.to_user)


@dataclass(frozen=True, repr=False)
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
    attributes: ItemAttributes | None = None
    """What is known of the items, for re-rankers whose groups of items are the values of a column."""

    @classmethod
    def from_pairs(
        cls,
        pairs: Pairs,
        n_users: int,
        n_items: int,
        device: str | torch.device = "cpu",
        attributes: ItemAttributes | None = None,
    ) -> BipartiteGraph:
        """Build a graph from distinct pairs sorted by user, then item.

        Parameters
        ----------
        pairs : training pairs
        n_users, n_items : how many there are, those without pairs included
        device : where its tensors lie
        attributes : of the items

        Returns
        -------
        the graph
        """
        if 2 * len(pairs) >= 2**31 or n_users + n_items >= 2**31:
            raise InputError(f"the graph has {len(pairs):,} edges; at most {2**30 - 1:,} fit its 32-bit indices")
        # Stable: an item's users stay ascending, so sums over neighbours have the same order, and bits,
        # everywhere.
        by_item = np.argsort(pairs.item, kind="stable").astype(np.int32)
        slots = [np.bincount(pairs.user, minlength=n_users), np.bincount(pairs.item, minlength=n_items)]
        indptr = np.concatenate([[0], np.cumsum(np.concatenate(slots))]).astype(np.int32)
        neighbours = np.concatenate([pairs.item + np.int32(n_users), pairs.user[by_item]], dtype=np.int32)
        count = None if pairs.count is None else pairs.count.astype(np.float32)

        def on_device(array: np.ndarray) -> Tensor:
            return torch.from_numpy(np.require(array, requirements=["C", "W"])).to(device)  # the pairs' own, not copies

        return cls(
            n_users=n_users,
            n_items=n_items,
            edge_user=on_device(pairs.user.astype(np.int32, copy=False)),
            edge_item=on_device(pairs.item.astype(np.int32, copy=False)),
            # One 1 expanded to all edges takes no memory.
            edge_count=torch.ones(1, device=device).expand(len(pairs)) if count is None else on_device(count),
            user_degree=on_device(np.bincount(pairs.user, count, minlength=n_users).astype(np.float32)),
            item_degree=on_device(np.bincount(pairs.item, count, minlength=n_items).astype(np.float32)),
            indptr=on_device(indptr),
            neighbours=on_device(neighbours),
            by_item=on_device(by_item),
            attributes=attributes,
        )

    @property
    def device(self) -> torch.device:
        """Where the edges lie."""
        return self.edge_user.device

    @property
    def n_edges(self) -> int:
        """Number of distinct training pairs."""
        return len(self.edge_user)

    @property
    def n_nodes(self) -> int:
        """Number of users and items."""
        return self.n_users + self.n_items

    @cached_property
    def _symmetric(self) -> EdgeWeights:
        scale = self.user_degree.rsqrt().index_select(0, self.edge_user)
        scale *= self.item_degree.rsqrt().index_select(0, self.edge_item)
        return EdgeWeights(scale.mul_(self.edge_count))

    def symmetric_weights(self) -> EdgeWeights:
        """Compute LightGCN's weights, `1 / √(d_u d_i)`, times the count of a repeated pair.

        Returns
        -------
        always the same object, so that layers share its memory
        """
        return self._symmetric

    def slot_values(self, weights: EdgeWeights) -> Tensor:
        """Arrange edge weights in the order of the matrix's slots: row v holds what v receives.

        Parameters
        ----------
        weights : of every edge

        Returns
        -------
        (2 · n_edges,)
        """
        slots = weights.to_user.new_empty(2 * self.n_edges)
        slots[: self.n_edges] = weights.to_user
        torch.index_select(weights.back, 0, self.by_item, out=slots[self.n_edges :])
        return slots
