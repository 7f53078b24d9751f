"""Base classes of re-rankers: selection of candidates, item groups and greedy list construction."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Annotated, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from dpaa.data.pairs import popular_items
from dpaa.errors import InputError
from dpaa.graph.kernels import top_k
from dpaa.ranking.quotas import Picked
from dpaa.ranking.reranker import Candidates, Reranker


class TopCandidates(Reranker):
    """Makes lists of each user's best candidates."""

    depth: int = Field(default=100, ge=1, le=1_000_000)
    """How many of a user's best candidates may come into the list; never fewer than its length."""

    @abstractmethod
    def arrange(self, scores: Tensor, items: Tensor, users: Tensor, k: int, candidates: Candidates) -> Tensor:
        """Select the positions of the candidates in the list.  (users, k), −1 where nothing is left.

        Scores (users, n) fall along each row from 1 to 0, −inf where there is no candidate; items are indices, of the
        same shape.
        """

    def rerank(self, scores: Tensor, users: Tensor, k: int, candidates: Candidates) -> Picked:
        """Arrange each user's best columns; they keep their scores."""
        return _of_the_best(self, self.depth, scores, users, k, candidates)

    def rerank_lists(self, scores: Tensor, items: Tensor, users: Tensor, k: int, candidates: Candidates) -> Picked:
        """The first `depth` of each list are its candidates."""
        n = max(self.depth, k)
        scores, items = scores[:, :n], items[:, :n].clamp(min=0)
        positions = self.arrange(normalised(scores), items, users, k, candidates)
        listed = scores.gather(1, positions.clamp(min=0)).masked_fill(positions < 0, -torch.inf)
        return listed, positions


class Grouped(TopCandidates):
    """Makes lists by groups of items: by popularity, or by a column of the items."""

    by: str | None = None
    """Column of the items whose values are the groups, or COLUMN=VALUE for two groups; by popularity by default. An
    item with several values is in the group of the first."""

    def groups(self, candidates: Candidates, *shares: float) -> tuple[Tensor, int]:
        """Group of each item, (n_items,) int64, and how many there are; shares as in `popularity_groups`."""
        if self.by is None:
            return popularity_groups(candidates, *shares), len(shares) + 1
        column, equals, value = self.by.partition("=")

        def made() -> tuple[Tensor, int]:
            if candidates.graph.attributes is None:
                raise InputError(f"the items have no column {column!r} to group by; make the dataset with --items FILE")
            masks = candidates.graph.attributes.groups(column)
            if equals and value not in masks:
                some = ", ".join(map(repr, list(masks)[:5]))
                raise InputError(f"no item has {value!r} in column {column!r}; some have {some}")
            group = np.zeros(candidates.graph.n_items, dtype=np.int64)
            for index, mask in [(1, masks[value])] if equals else reversed(list(enumerate(masks.values()))):
                group[mask] = index
            if not equals:  # a value that is nobody's first has no items
                group = np.unique(group, return_inverse=True)[1]
            n_groups = 2 if equals else int(group.max()) + 1
            return torch.from_numpy(group).to(candidates.graph.item_degree.device), n_groups

        return candidates.once(("groups", self.by), made)


class Rescored(Reranker):
    """Gives every candidate another score, from its own and its popularity; the highest make the list."""

    depth: Literal["all"] | Annotated[int, Field(ge=1, le=1_000_000)] = "all"
    """How many of a user's best candidates may come into the list; `all`, or a number."""

    @abstractmethod
    def rescored(self, scores: Tensor, popularity: Tensor) -> Tensor:
        """Compute new scores.  Scores are (users, n) float64; −inf marks non-candidates and must be kept.

        Popularity is the items' training count, (n,) or (users, n).
        """

    def rerank(self, scores: Tensor, users: Tensor, k: int, candidates: Candidates) -> Picked:
        """List the highest new scores."""
        if self.depth == "all":
            return top_k(self.rescored(scores.double(), candidates.popularity), k)
        return _of_the_best(self, self.depth, scores, users, k, candidates)

    def rerank_lists(self, scores: Tensor, items: Tensor, users: Tensor, k: int, candidates: Candidates) -> Picked:
        """List the highest new scores of given lists; ties go to the better rank."""
        n = scores.shape[1] if self.depth == "all" else max(self.depth, k)
        popularity = candidates.graph.item_degree[items[:, :n].clamp(min=0)]
        return top_k(self.rescored(scores[:, :n].double(), popularity), k)


def _of_the_best(
    reranker: Reranker, depth: int, scores: Tensor, users: Tensor, k: int, candidates: Candidates
) -> Picked:
    """Re-rank each user's best columns as a list."""
    values, columns = top_k(scores, min(max(depth, k), scores.shape[1]))
    items = columns if candidates.items is None else candidates.items[columns.clamp(min=0)]
    values, positions = reranker.rerank_lists(values, items, users, k, candidates)
    return values, torch.where(positions < 0, -1, columns.gather(1, positions.clamp(min=0)))


Gain = Callable[[Tensor, Tensor], Tensor]
"""Scores of the first item left of each group, and how many of each are in the list; both (users, groups) float64.
Returns what it would be worth to take it, of the same shape."""


def normalised(scores: Tensor) -> Tensor:
    """Scale each user's scores to 0 (the last candidate) … 1 (the first), 0 where all are equal.  float64.

    −inf marks what is no candidate and stays.  Of two scores the higher is never below the other afterwards.
    """
    wide = scores.double()
    there = wide > -torch.inf
    low = wide.masked_fill(~there, torch.inf).amin(dim=1, keepdim=True)
    spread = wide.amax(dim=1, keepdim=True) - low
    return torch.where(there, (wide - low) / torch.where(spread > 0, spread, 1.0), -torch.inf)


def greedy(scores: Tensor, groups: Tensor, n_groups: int, k: int, gain: Gain) -> Tensor:
    """Fill lists item by item with the candidate of the largest gain; ties go to the better base rank.

    Scores (users, candidates) fall along each row and end in −inf where there is no candidate; groups, of the same
    shape, count from 0.  Returns (users, k) int64, −1 where nothing is left.
    """
    n = scores.shape[1]
    there = scores > -torch.inf
    small = torch.int8 if n_groups < 127 else torch.int32
    waiting = torch.where(there, groups, n_groups).to(small)  # what is no candidate waits behind all groups
    order = waiting.argsort(dim=1, stable=True)  # one queue after the other, each in the order of the scores
    sizes = torch.stack([(waiting == group).sum(dim=1) for group in range(n_groups)], dim=1)
    starts = sizes.cumsum(dim=1) - sizes
    taken = torch.zeros_like(sizes)
    positions = torch.full((len(scores), k), -1, device=scores.device)
    for slot in range(min(k, n)):
        first = order.gather(1, (starts + taken).clamp(max=n - 1))  # (users, groups)
        ended = taken >= sizes
        worth = gain(scores.gather(1, first).masked_fill(ended, 0.0), taken.double()).masked_fill(ended, -torch.inf)
        best = worth.amax(dim=1, keepdim=True)
        rank = first.masked_fill(ended | (worth < best), n)
        chosen = rank.argmin(dim=1, keepdim=True)
        best_rank = rank.gather(1, chosen)
        positions[:, slot : slot + 1] = best_rank.masked_fill(best_rank == n, -1)
        taken.scatter_add_(1, chosen, (best_rank < n).long())
    return positions


def popularity_groups(candidates: Candidates, *shares: float) -> Tensor:
    """Group of each item: 0 for the most popular that cover the first share of all training interactions, and so on.

    One group more than there are shares, which ascend; the last holds the rarest items, and those never taken.
    (n_items,) int64, made once for all blocks of users.
    """

    def made() -> Tensor:
        counts = candidates.graph.item_degree.cpu().numpy()
        group = np.full(len(counts), len(shares), dtype=np.int64)
        for share in shares:
            group -= popular_items(counts, share)
        return torch.from_numpy(group).to(candidates.graph.item_degree.device)

    return candidates.once(("popularity groups", *shares), made)


def history_shares(candidates: Candidates, users: Tensor, group: Tensor, n_groups: int) -> Tensor:
    """Share of each group in each user's history, (users, n_groups) float64; 0 throughout without a history."""
    owner, item = candidates.taken(users)
    counts = torch.bincount(owner * n_groups + group[item], minlength=len(users) * n_groups).view(-1, n_groups).double()
    return counts / counts.sum(dim=1, keepdim=True).clamp(min=1.0)


def shares_with_one_more(counts: Tensor) -> Tensor:
    """Shares of the groups in the list if one item of group g is added: entry [u, g, c] is group c's.  (u, g, g)."""
    longer = counts[:, None, :] + torch.eye(counts.shape[1], dtype=counts.dtype, device=counts.device)
    return longer / longer.sum(dim=2, keepdim=True)
