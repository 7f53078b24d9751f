"""FairRec: a minimum number of places for every group of items, over all users (Patro et al., WWW 2020).

With m users, lists of k and n groups of items, the largest floor that could be promised to all is the maximin share
m k / n; FairRec promises ⌊α m k / n⌋ places.  In rounds, each user in turn takes the best item left of a group that is
still below the floor; what is then free in a list takes the best other items.  In the paper every item is a group (a
producer); here it may also be the value of a column, such as the publisher.  With masked pairs the rounds can get stuck
below a floor that can be reached; a maximum flow from groups to users then says who takes how many of which group.
"""

from typing import Any, ClassVar

import numpy as np
import torch
from pydantic import Field
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_flow
from torch import Tensor

from dpaa.data.ids import Ints, Mask
from dpaa.errors import InputError
from dpaa.ranking.reranker import Candidates
from dpaa.ranking.rerankers._greedy import Grouped


class FairRec(Grouped):
    """A floor for every group of items, by round robin; then the best items."""

    name: ClassVar[str] = "fairrec"
    title: ClassVar[str] = "guarantees every group of items (a column's values, or each item) a minimum of places"
    paper: ClassVar[str] = "Patro et al., FairRec: Two-Sided Fairness for Personalized Recommendations, WWW 2020"
    together: ClassVar[bool] = True

    strength: float = Field(default=0.5, ge=0, le=1)
    """α: the floor as a share of the maximin share, users · k / groups; 0 is the list as it was."""
    depth: int = Field(default=1_000_000, ge=1, le=1_000_000)
    """How many of a user's best candidates may come into the list; all by default, so that a floor can be reached."""

    def arrange(self, scores: Tensor, items: Tensor, users: Tensor, k: int, candidates: Candidates) -> Tensor:
        """Round robin up to the floor, then by score; a floor that is not reached is refused."""
        free = (scores > -torch.inf).cpu().numpy()
        if self.by is None:
            every, n_groups = torch.arange(candidates.graph.n_items, device=items.device), len(candidates.popularity)
        else:
            every, n_groups = self.groups(candidates)
        group = every[items].cpu().numpy()
        slots = int(free.any(axis=1).sum()) * k
        floor = int(self.strength * slots / n_groups)
        what = f"fairrec with strength {self.strength:g}: {slots:,} places for {n_groups:,} groups of items"
        if self.strength and not floor:
            raise InputError(f"{what}, a floor below 1; rank more users at once, or group by a coarser column")
        lacking = np.full(candidates.graph.n_items if self.by is None else n_groups, floor)
        if self.by is None and candidates.items is not None:
            lacking[np.setdiff1d(np.arange(len(lacking)), candidates.items.cpu().numpy())] = 0
        wanted = lacking.copy()
        taken = _round_robin(free, group, lacking, k)
        if lacking.any():  # stuck below a floor, which another order of turns may reach
            taken, lacking = _by_flow(free, group, wanted, k)
        if lacking.any():
            short = f"{int((lacking > 0).sum()):,} of them cannot reach their floor of {floor:,}"
            raise InputError(f"{what}; {short} with the candidates there are; lower the strength")
        free &= ~taken
        spare = k - taken.sum(axis=1, keepdims=True)
        taken |= free & (np.cumsum(free, axis=1) <= spare)
        order = np.argsort(~taken, axis=1, kind="stable")[:, :k]  # in the order of the candidates, best first
        positions = np.full((len(free), k), -1)
        positions[:, : order.shape[1]] = np.where(np.take_along_axis(taken, order, axis=1), order, -1)
        return torch.from_numpy(positions).to(scores.device)


def _round_robin(free: Mask, group: Ints, lacking: Ints, k: int) -> Mask:
    """Candidates that users take in turn, (users, candidates); `left`, what each group still lacks, is counted down."""
    taken = np.zeros_like(free)
    for _ in range(k):
        before = int(lacking.sum())
        for row in range(len(free)):
            wanted = free[row] & ~taken[row] & (lacking[group[row]] > 0)
            best = int(wanted.argmax())
            if wanted[best]:
                taken[row, best] = True
                lacking[group[row, best]] -= 1
        if int(lacking.sum()) in (0, before):
            break
    return taken


def _by_flow(free: Mask, group: Ints, wanted: Ints, k: int) -> tuple[Mask, Ints]:
    """Fill floors by a maximum flow: source, groups, users, sink.  Returns what is taken, and what groups lack."""
    (m, _), n = free.shape, len(wanted)
    row, column = np.nonzero(free)
    users = np.arange(n + 1, n + m + 1)
    tails = np.concatenate([np.zeros(n), group[row, column] + 1, users])
    heads = np.concatenate([np.arange(1, n + 1), row + n + 1, np.full(m, n + m + 1)])
    most = np.concatenate([wanted, np.ones(len(row)), np.full(m, k)]).astype(np.int32)  # of one edge they are added
    size = n + m + 2, n + m + 2
    edges: Any = csr_matrix((most, (tails, heads)), shape=size, dtype=np.int32)  # scipy's types say arrays alone
    flow = maximum_flow(edges, 0, n + m + 1).flow[1 : n + 1, n + 1 : n + m + 1]
    taken = np.zeros_like(free)
    for index, user in zip(*flow.nonzero(), strict=True):
        taken[user, np.flatnonzero(free[user] & (group[user] == index))[: flow[index, user]]] = True
    return taken, wanted - np.asarray(flow.sum(axis=1)).ravel()
