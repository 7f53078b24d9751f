"""One greedy engine for all re-rankers that care for the groups of a list: user by user the best next item, k times.

Candidates stand best first.  What makes an item worth more or less than its score depends on its group alone, so of
each group only the first that is left can be the next: a step compares as many items as there are groups, for all users
of a block at once.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Gain = Callable[[Tensor, Tensor], Tensor]
"""Scores of the first item left of each group, and how many of each are in the list; both (users, groups) float64.
Returns what it would be worth to take it, of the same shape."""


def normalised(scores: Tensor) -> Tensor:
    """Each user's scores from 0 (the last candidate's) to 1 (the first's), 0 where all are equal.  float64.

    −inf marks what is no candidate and stays.  Of two scores the higher is never below the other afterwards.
    """
    wide = scores.double()
    there = wide > -torch.inf
    low = wide.masked_fill(~there, torch.inf).amin(dim=1, keepdim=True)
    spread = wide.amax(dim=1, keepdim=True) - low
    return torch.where(there, (wide - low) / torch.where(spread > 0, spread, 1.0), -torch.inf)


def greedy(scores: Tensor, groups: Tensor, n_groups: int, k: int, gain: Gain) -> Tensor:
    """Places of the candidates that make the lists, in their order; ties go to the better base rank.

    Scores (users, candidates) fall along each row and end in −inf where there is no candidate; groups, of the same
    shape, count from 0.  Returns (users, k) int64, −1 where nothing is left.
    """
    n = scores.shape[1]
    there = scores > -torch.inf
    waiting = torch.where(there, groups, n_groups).to(torch.int8)  # what is no candidate waits behind all groups
    order = waiting.argsort(dim=1, stable=True)  # one queue after the other, each in the order of the scores
    sizes = torch.stack([(waiting == group).sum(dim=1) for group in range(n_groups)], dim=1)
    starts = sizes.cumsum(dim=1) - sizes
    taken = torch.zeros_like(sizes)
    places = torch.full((len(scores), k), -1, device=scores.device)
    for slot in range(min(k, n)):
        first = order.gather(1, (starts + taken).clamp(max=n - 1))  # (users, groups)
        ended = taken >= sizes
        worth = gain(scores.gather(1, first).masked_fill(ended, 0.0), taken.double()).masked_fill(ended, -torch.inf)
        best = worth.amax(dim=1, keepdim=True)
        rank = first.masked_fill(ended | (worth < best), n)
        chosen = rank.argmin(dim=1, keepdim=True)
        found = rank.gather(1, chosen)
        places[:, slot : slot + 1] = found.masked_fill(found == n, -1)
        taken.scatter_add_(1, chosen, (found < n).long())
    return places
