"""How unequally something is spread over items: curve, Gini, share of the head.  `counts` is (n_items,), each ≥ 0."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


HEAD_FRACTION = 5
"""The head is one item in five, rounded up."""


def lorenz(counts: Array, points: int = 101) -> Array:
    """Lorenz curve: the least popular share p of the items has the share L(p) of the counts.

    L joins the points (j/n, Σ of the j smallest counts / Σ of all) by lines; it is convex, L(0) = 0, L(1) = 1, and
    L(p) = p where all items are alike (Lorenz, 1905).  Returns (points, 2): p and L(p), evenly spaced in p.
    """
    rising = np.sort(counts).astype(np.float64)
    p = np.linspace(0.0, 1.0, points)
    reached = np.concatenate([[0.0], np.cumsum(rising) / rising.sum()])
    share = np.interp(p, np.linspace(0.0, 1.0, len(rising) + 1), reached)
    share[-1] = 1.0
    return np.column_stack([p, share])


def gini(counts: Array) -> float:
    """Gini coefficient `Σ_j (2j − n − 1) c_(j) / (n Σ c)`, c_(1) ≤ … ≤ c_(n): 0 = all alike, (n − 1)/n = one has all.

    Twice the area between the Lorenz curve and the diagonal.  NaN where nothing was counted.
    """
    rising = np.sort(counts).astype(np.float64)
    n, total = len(rising), rising.sum()
    if total <= 0:
        return float("nan")
    return float(max(0.0, (2.0 * np.arange(1, n + 1) - n - 1) @ rising / (n * total)))


def head(counts: Array) -> NDArray[np.bool_]:
    """The fifth (rounded up) of the items that occur, `counts` > 0, with the highest counts; ties by lower index.

    Returns (n_items,) bool.
    """
    n_head = -(-int((counts > 0).sum()) // HEAD_FRACTION)
    in_head = np.zeros(len(counts), dtype=bool)
    in_head[np.argsort(-counts, kind="stable")[:n_head]] = True
    return in_head


def share_of(group: NDArray[np.bool_], counts: Array) -> float:
    """The group's share of all counts, in [0, 1]; NaN where nothing was counted."""
    total = counts.sum()
    return float(counts[group].sum() / total) if total > 0 else float("nan")


def most_moved(change: Array, number: int) -> tuple[Array, Array]:
    """The items that gain most and those that lose most, by lower index where equal; items that stay are neither."""
    gaining = np.argsort(-change, kind="stable")[:number]
    losing = np.argsort(change, kind="stable")[:number]
    return gaining[change[gaining] > 0], losing[change[losing] < 0]


TASTES = ("niche", "diverse", "blockbuster")
EDGE = 0.2
"""The fifth of the users whose histories have the smallest share of popular items has niche tastes, the fifth with the
largest blockbuster tastes."""


def tastes(popular_share: NDArray[np.float64]) -> NDArray[np.int64]:
    """Taste of each user, an index into `TASTES`, from the share of popular items in the history; −1 for NaN (none).

    With lo and hi the 20% and 80% quantiles of the shares: niche ≤ lo, blockbuster ≥ hi, diverse between; all are
    diverse where lo = hi.  Users with equal shares are never parted, so a group may hold more than a fifth
    (Abdollahpouri et al., RecSys 2019 stages on multi-stakeholder environments, cut by rank).  Returns (users,).
    """
    known = ~np.isnan(popular_share)
    result = np.full(len(popular_share), -1, dtype=np.int64)
    if not known.any():
        return result
    # Quantiles that are shares of users, not numbers between two of them.
    shares = popular_share[known]
    lo = np.quantile(shares, EDGE, method="lower")
    hi = np.quantile(shares, 1.0 - EDGE, method="higher")
    taste = np.full(len(shares), TASTES.index("diverse"))
    if lo < hi:
        taste[shares <= lo] = TASTES.index("niche")
        taste[shares >= hi] = TASTES.index("blockbuster")
    result[known] = taste
    return result


def mean_per_row(rows: NDArray[Any], values: NDArray[Any], n_rows: int) -> NDArray[np.float64]:
    """Mean of the values of each row, NaN for a row without any.  Returns (n_rows,)."""
    number = np.bincount(rows, minlength=n_rows)
    sums = np.bincount(rows, values, minlength=n_rows)
    return np.where(number > 0, sums / np.maximum(number, 1), np.nan)
