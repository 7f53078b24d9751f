"""Triples drawn where the graph lies: on a GPU, where the host's would have to be waited for and copied.

The same distributions as `data.sampling.TripleSampler`'s by the same formulas, with the device's own random numbers.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dpaa.graph.bipartite import BipartiteGraph


class DeviceSampler:
    """Positive items in proportion to their counts, negative ones uniformly among those not taken (or among all)."""

    def __init__(self, graph: BipartiteGraph, any_item: bool = False) -> None:
        n_users, n_items = graph.n_users, graph.n_items
        self._graph, self._any_item = graph, any_item
        self._indptr = graph.indptr[: n_users + 1].long()
        taken = self._indptr.diff()
        self._usable = (taken > 0) & (taken < n_items)
        self._untaken = n_items - taken
        self._count_ends = torch.nn.functional.pad(graph.edge_count.long().cumsum(0), (1, 0))
        before = torch.arange(graph.n_edges, device=graph.edge_user.device) - self._indptr[:-1][graph.edge_user.long()]
        self._keys = graph.edge_user.long() * (n_items + 1) + graph.edge_item.long() - before
        self.n_interactions = int(self._count_ends[-1])

    def epoch(self, generator: torch.Generator, how: str) -> tuple[Tensor, Tensor, Tensor]:
        """Users, positive and negative items of one epoch, shuffled; each (triples,) int64."""
        if how == "user-uniform":
            users = self._below(self._graph.n_users, self.n_interactions, generator)
            users = users[self._usable[users]]
            first, last = self._count_ends[self._indptr[users]], self._count_ends[self._indptr[users + 1]]
            drawn = first + self._uniform(last - first, generator)
            slots = torch.searchsorted(self._count_ends, drawn, right=True) - 1
        else:
            order = torch.randperm(self.n_interactions, generator=generator, device=self._keys.device)
            slots = torch.searchsorted(self._count_ends, order, right=True) - 1
            slots = slots[self._usable[self._graph.edge_user[slots].long()]]
            users = self._graph.edge_user[slots].long()
        return users, self._graph.edge_item[slots].long(), self._negative(users, generator)

    def _negative(self, users: Tensor, generator: torch.Generator) -> Tensor:
        """The item of a random rank among those not taken: `data.sampling` says how it is found."""
        if self._any_item:
            return self._below(self._graph.n_items, len(users), generator)
        rank = self._uniform(self._untaken[users], generator)
        wanted = users * (self._graph.n_items + 1) + rank
        return rank + torch.searchsorted(self._keys, wanted, right=True) - self._indptr[users]

    def _below(self, n: int, many: int, generator: torch.Generator) -> Tensor:
        return torch.randint(n, (many,), generator=generator, device=self._keys.device)

    def _uniform(self, below: Tensor, generator: torch.Generator) -> Tensor:
        """A whole number from 0 to below each of these; float64 makes no difference below 2⁵³."""
        drawn = torch.rand(len(below), generator=generator, device=below.device, dtype=torch.float64)
        return torch.minimum((drawn * below).long(), below - 1)
