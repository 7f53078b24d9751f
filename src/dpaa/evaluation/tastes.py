"""Users by how popular their history is: niche, diverse and blockbuster tastes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

TASTES = ("niche", "diverse", "blockbuster")
EDGE = 0.2
"""The fifth of the users whose histories have the smallest share of popular items has niche tastes, the fifth with the
largest blockbuster tastes."""


def tastes(popular_share: NDArray[np.float64]) -> NDArray[np.int64]:
    """Taste of each user, an index into `TASTES`, from the share of popular items in the history; −1 for NaN (none).

    With lo and hi the 20 % and 80 % quantiles of the shares: niche ≤ lo, blockbuster ≥ hi, diverse between; all are
    diverse where lo = hi.  Users with equal shares are never parted, so a group may hold more than a fifth
    (Abdollahpouri et al., RecSys 2019 stages on multi-stakeholder environments, cut by rank).  Returns (users,).
    """
    known = ~np.isnan(popular_share)
    found = np.full(len(popular_share), -1, dtype=np.int64)
    if not known.any():
        return found
    # Quantiles that are shares of users, not numbers between two of them.
    shares = popular_share[known]
    lo = np.quantile(shares, EDGE, method="lower")
    hi = np.quantile(shares, 1.0 - EDGE, method="higher")
    taste = np.full(len(shares), TASTES.index("diverse"))
    if lo < hi:
        taste[shares <= lo] = TASTES.index("niche")
        taste[shares >= hi] = TASTES.index("blockbuster")
    found[known] = taste
    return found


def mean_per_row(rows: NDArray[Any], values: NDArray[Any], n_rows: int) -> NDArray[np.float64]:
    """Mean of the values of each row, NaN for a row without any.  Returns (n_rows,)."""
    number = np.bincount(rows, minlength=n_rows)
    sums = np.bincount(rows, values, minlength=n_rows)
    return np.where(number > 0, sums / np.maximum(number, 1), np.nan)
