"""Concentration of counts and popularity of lists, shared by several metrics and the audit.

`lists` is (users, k) item indices, −1 where a list ends early or the item is not known; `popular` is (n_items,) bool
(see `dpaa.data.pairs`).  An empty list says nothing about popularity: its value is NaN, and averages leave its
user out.  The metrics themselves are in `dpaa.evaluation.metrics`.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaa.data.ids import Array, Floats, Mask
from dpaa.data.pairs import POPULAR_SHARE, popular_items

HEAD_FRACTION = 5
"""The head is one item in five, rounded up."""
N_BANDS = 3
"""Tail, middle and head."""


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
    # Not below 0: of equal counts rounding may leave a last digit.
    return float(max(0.0, (2.0 * np.arange(1, n + 1) - n - 1) @ rising / (n * total)))


def head(counts: Array) -> Mask:
    """The fifth (rounded up) of the items that occur, `counts` > 0, with the highest counts; ties by lower index.

    Returns (n_items,) bool.
    """
    n_head = -(-int((counts > 0).sum()) // HEAD_FRACTION)
    in_head = np.zeros(len(counts), dtype=bool)
    in_head[np.argsort(-counts, kind="stable")[:n_head]] = True
    return in_head


def share_of(group: Mask, counts: Array) -> float:
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


def tastes(popular_share: Floats) -> NDArray[np.int64]:
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


def mean_per_row(rows: NDArray[Any], values: NDArray[Any], n_rows: int) -> Floats:
    """Mean of the values of each row, NaN for a row without any.  Returns (n_rows,)."""
    number = np.bincount(rows, minlength=n_rows)
    sums = np.bincount(rows, values, minlength=n_rows)
    return np.where(number > 0, sums / np.maximum(number, 1), np.nan)


def exposure(lists: Array, n_items: int) -> NDArray[np.int64]:
    """Count how often each item is recommended.  Returns (n_items,)."""
    return np.bincount(lists[lists >= 0], minlength=n_items)


def mean_of_lists(value: Array, lists: Array) -> Floats:
    """Average the items' values over each list, NaN for an empty one.  Returns (users,)."""
    taken = lists >= 0
    length = taken.sum(axis=1)
    sums = np.where(taken, value[lists], 0.0).sum(axis=1)
    return np.where(length > 0, sums / np.maximum(length, 1), np.nan)


def mean_of_known(values: Floats) -> float:
    """Average over users that have a value; NaN without any."""
    known = ~np.isnan(values)
    return float(values[known].mean()) if known.any() else float("nan")


def decile_shares(lists: Array, decile: Array) -> Floats:
    """Share of all recommendations on each popularity decile, rarest first; the last is items not in training.

    `decile` is (n_items,) from `popularity_deciles`.  Returns (11,), which sum to 1.
    """
    given = decile[lists[lists >= 0]]
    counts = np.bincount(np.where(given < 0, 10, given), minlength=11)
    return counts / counts.sum() if counts.sum() else np.full(11, np.nan)


def among(n_items: int, candidates: Array | None) -> Mask:
    """Whether each item is a candidate; None = all are.  Returns (n_items,)."""
    allowed = np.full(n_items, candidates is None)
    if candidates is not None:
        allowed[candidates] = True
    return allowed


def by_group(items: Array, popular: Mask) -> NDArray[np.int64]:
    """Count how many of the items are niche, and how many popular."""
    return np.bincount(popular[items].astype(np.int64), minlength=2)


def relative_spread(part: Array, whole: Array) -> float:
    """`std / mean` of the shares of two groups, `|p − q| / (p + q)`; NaN where a group has nothing, or no part any."""
    if not (whole > 0).all() or not part.any():
        return float("nan")
    share = part / whole
    return float(share.std() / share.mean())


def popularity_bands(counts: Array) -> NDArray[np.int64]:
    """Three groups of items: head = most frequent with a fifth of all interactions, tail = the niche items, middle.

    Returns (n_items,): 0 tail, 1 middle, 2 head.  The tail has the last fifth of the interactions (Abdollahpouri et
    al., UMAP 2021).
    """
    return popular_items(counts).astype(np.int64) + popular_items(counts, 1.0 - POPULAR_SHARE)


def band_shares(rows: Array, items: Array, band: Array, n_rows: int) -> Floats:
    """Shares of the three bands among the items of each row; NaN for a row without items.  Returns (n_rows, 3)."""
    counts = np.bincount(rows * N_BANDS + band[items], minlength=n_rows * N_BANDS).reshape(n_rows, N_BANDS)
    total = counts.sum(axis=1, keepdims=True)
    return np.where(total > 0, counts / np.maximum(total, 1), np.nan)


def jensen_shannon(one: Floats, other: Floats) -> Floats:
    """Jensen-Shannon distance between the shares of each row, (rows, groups) each.

    `√(½ KL(p‖m) + ½ KL(q‖m))`, m = (p + q)/2, logarithms to base 2: 0 = the same, 1 = nothing in common; NaN where a
    row has no shares.  Returns (rows,).
    """
    middle = (one + other) / 2.0
    divergence = np.zeros(len(middle))
    for p in (one, other):
        # Only where p > 0 is there anything to add, and there the middle is positive too.
        ratio = np.divide(p, middle, out=np.ones_like(p), where=p > 0)  # 0 · log 0 = 0
        divergence += 0.5 * (p * np.log2(ratio)).sum(axis=1)
    return np.sqrt(np.clip(divergence, 0.0, 1.0))
