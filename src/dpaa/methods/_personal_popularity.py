"""How popular an item is with the users most similar to one: sparse, a block of users at a time."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor
from torch.nn.functional import normalize

from dpaa.graph.bipartite import BipartiteGraph
from dpaa.graph.cooccurrence import BLOCK_ROWS, KnownPairs, Lists, in_common, row_blocks
from dpaa.graph.kernels import top_k
from dpaa.methods._popularity import items_of_users, users_of_items


class PersonalPopularity:
    """`PP_ui = #{v similar to u : v took i}`, rows of unit length; similar = the K with the highest Jaccard."""

    def __init__(self, graph: BipartiteGraph, neighbours: int) -> None:
        self.n_users, self.n_items = graph.n_users, graph.n_items
        self.neighbours = neighbours
        self._items, self._users = items_of_users(graph), users_of_items(graph)
        keys = graph.edge_user.long() * graph.n_items + graph.edge_item  # ascending
        self._device = keys.device
        self._known = KnownPairs(keys, graph.n_users * graph.n_items)

    @cached_property
    def similar_users(self) -> Tensor:
        """The most similar users of every training user, (n_users, K) int64, −1 where there are fewer."""
        return self.most_similar(self._items, torch.arange(self.n_users, device=self._device), known=True)

    def most_similar(self, items: Lists, index: Tensor, known: bool) -> Tensor:
        """By Jaccard similarity, ties to the larger user, never oneself nor anyone with nothing in common.

        `items` are the lists of the users to be compared with those of training, `known` says that they are the same.
        """
        blocks = row_blocks(index, items, self._items)
        return torch.cat([self._most_similar(items, block, known) for block in blocks])

    def _most_similar(self, items: Lists, index: Tensor, known: bool) -> Tensor:
        shared = in_common(items, index, self._items)
        union = items.lengths[index][:, None] + self._items.lengths - shared
        similarity = torch.where(shared > 0, shared / union, -torch.inf)
        if known:
            similarity[torch.arange(len(index), device=index.device), index] = -torch.inf
        found = top_k(similarity.flip(1), self.neighbours)[1]
        return torch.where(found >= 0, self.n_users - 1 - found, -1)

    def rows(self, similar: Tensor) -> Tensor:
        """Whole rows of PP, from the similar users of each.  (rows, n_items)."""
        return normalize(self._counts(similar))

    def of_pairs(self, users: Tensor, items: Tensor) -> Tensor:
        """PP of these pairs alone: each similar user is looked up in the training pairs.  (pairs,)."""
        wanted = self.similar_users[users] * self.n_items + items[:, None]  # negative where there is nobody
        return self._known.contain(wanted).sum(dim=1) / self._norms[users]

    def _counts(self, similar: Tensor) -> Tensor:
        row, place = (similar >= 0).nonzero(as_tuple=True)
        circle = Lists.of(row, similar[row, place], len(similar), self.n_users)
        return in_common(circle, torch.arange(len(similar), device=similar.device), self._users)

    @cached_property
    def _norms(self) -> Tensor:
        """Length of each user's row of counts; 1 for an empty one.  (n_users,)."""
        norms = torch.cat([self._counts(part).norm(dim=1) for part in torch.split(self.similar_users, BLOCK_ROWS)])
        return torch.where(norms > 0, norms, 1.0)
