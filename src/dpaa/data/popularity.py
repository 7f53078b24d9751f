"""Popularity comes from training counts only: the popular / niche split and its deciles."""

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
