"""How popular the recommended items are.  `lists` is (users, k) item indices, −1 where a list ends early."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]


def arp(lists: Array, counts: Array) -> float:
    """Average recommendation popularity: mean over users of the mean training count of their list.

    Lower is less popular (Yin et al., VLDB 2012).  Users with an empty list are left out.
    """
    return _mean_over_lists(counts.astype(np.float64), lists)


def aplt(lists: Array, popular: Array) -> float:
    """Average share of niche items in lists, in [0, 1]; higher is more niche (Abdollahpouri et al., FLAIRS 2019)."""
    return _mean_over_lists((~popular).astype(np.float64), lists)


def coverage(lists: Array, n_candidates: int) -> float:
    """Distinct recommended items over candidates, in [0, 1]; higher is more diverse."""
    return len(np.unique(lists[lists >= 0])) / n_candidates


def _mean_over_lists(value: Array, lists: Array) -> float:
    taken = lists >= 0
    length = taken.sum(axis=1)
    sums = np.where(taken, value[lists], 0.0).sum(axis=1)
    return float(np.mean(sums[length > 0] / length[length > 0])) if length.any() else float("nan")
