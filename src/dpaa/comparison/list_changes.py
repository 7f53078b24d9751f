"""What changes between two sets of lists: how much they share, whose exposure moves, and for whom it matters most.

`lists` is (users, k) item indices, each item once in a list, −1 where a list ends early.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[Any]
Floats = NDArray[np.float64]


def shared_items(one: Ints, other: Ints) -> Ints:
    """How many items the two lists of each user share.  Returns (users,)."""
    both = np.sort(np.concatenate([one, other], axis=1), axis=1)  # an item of both stands beside itself
    return np.asarray(((both[:, 1:] == both[:, :-1]) & (both[:, 1:] >= 0)).sum(axis=1))


def jaccard(one: Ints, other: Ints) -> Floats:
    """`|A ∩ B| / |A ∪ B|` per user, in [0, 1]; 1 for two empty lists.  Returns (users,)."""
    shared = shared_items(one, other)
    union = (one >= 0).sum(axis=1) + (other >= 0).sum(axis=1) - shared
    return np.where(union > 0, shared / np.maximum(union, 1), 1.0)


def telling_users(gain: Floats, shared: Ints, number: int, listed: Ints | None = None) -> Ints:
    """Users for whom most changes: those who gain most and those who lose most in turn, fewer shared items first.

    Where nobody gains or loses (any more), those whose lists share least.  Users who are not `listed` (bool per user;
    all are unless given) come only when no other is left.  Returns (at most `number`,) rows.
    """
    index = np.arange(len(gain))
    later = np.zeros(len(gain), dtype=bool) if listed is None else ~listed
    up = [row for row in np.lexsort((index, shared, -gain, later))[:number] if gain[row] > 0 and not later[row]]
    down = [row for row in np.lexsort((index, shared, gain, later))[:number] if gain[row] < 0 and not later[row]]
    rest = np.lexsort((index, shared, later))[: 3 * number]
    in_turn = [row for pair in zip(up, down, strict=False) for row in pair]
    ordered = [*in_turn, *up[len(down) :], *down[len(up) :], *rest]
    return np.array(list(dict.fromkeys(ordered))[:number], dtype=np.int64)
