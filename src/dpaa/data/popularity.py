"""Popularity comes from training pairs only: the popular / niche split, its deciles, and recent popularity."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

POPULAR_SHARE = 0.8
"""Popular items cover this share of the training interactions."""


def popular_items(counts: NDArray[Any], share: float = POPULAR_SHARE) -> NDArray[np.bool_]:
    """The smallest set of most-interacted items that covers `share` of all interactions; ties by lower index.

    Items that tie where the set is full are told apart by their index, which is the order of their ids: a stable sort,
    so that the same data has the same popular items on every machine (`docs/metrics.md`, "Ties at the cut").  Returns
    (n_items,) bool; an item without interactions is never popular.
    """
    order = np.argsort(-counts, kind="stable")
    before = np.concatenate([[0], np.cumsum(counts[order])[:-1]])
    popular = np.zeros(len(counts), dtype=bool)
    popular[order[before < share * counts.sum()]] = True
    return popular & (counts > 0)


def popularity_deciles(counts: NDArray[Any]) -> NDArray[np.int64]:
    """Tenths of the items that occur in training, rare (0) → popular (9), ties by lower index; −1 for the others.

    Returns (n_items,).
    """
    order = np.argsort(counts, kind="stable")
    order = order[counts[order] > 0]
    decile = np.full(len(counts), -1, dtype=np.int64)
    decile[order] = np.arange(len(order)) * 10 // max(len(order), 1)
    return decile


def recent_popularity(
    item: NDArray[Any], time: NDArray[Any], n_items: int, count: NDArray[Any] | None = None
) -> NDArray[np.float32]:
    """Interactions of each item, weighted by recency: the weight halves with every median age.

    An age is the time from an interaction to the last one of the log.  The median adapts to logs of days and of years,
    and a few wrong times do not move it.

    Parameters
    ----------
    item : (n,) item index of each training pair
    time : (n,) its time, in any unit; NaN where it is not known, which counts as old as the median
    n_items : number of items
    count : (n,) how often each pair occurred; None = once each

    Returns
    -------
    (n_items,) float32
    """
    times = np.asarray(time, dtype=np.float64)
    age = np.nanmax(times, initial=-np.inf) - times
    typical = float(np.nanmedian(age)) if np.isfinite(age).any() else 0.0
    age = np.nan_to_num(age / typical, nan=1.0) if typical > 0 else np.zeros(len(times))
    weight = np.exp2(-age) * (1.0 if count is None else count)
    return np.bincount(item, weight, minlength=n_items).astype(np.float32)
