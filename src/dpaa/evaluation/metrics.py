"""Accuracy: one formula each, for all users at once.

`hits` is (users, k) bool: whether the item at that rank is relevant; `relevant` is (users,), each ≥ 1: how many
relevant items the user has.  Each returns one number per user, in [0, 1], larger is better.  A list that ends early
has no hits in its empty places: an empty list scores 0.  Users without a relevant item are left out by the caller.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Hits = NDArray[np.bool_]
PerUser = NDArray[Any]


def recall(hits: Hits, relevant: PerUser) -> PerUser:
    """`hits / |relevant|`; not divided by min(k, |relevant|): see deviations.md, "Recall"."""
    return np.asarray(hits.sum(axis=1) / relevant)


def precision(hits: Hits, relevant: PerUser) -> PerUser:
    """`hits / k`; a list that ends early is divided by k all the same."""
    del relevant
    return np.asarray(hits.mean(axis=1))


def ndcg(hits: Hits, relevant: PerUser) -> PerUser:
    """`Σ_hits 1/log2(rank + 1)` over the same sum for the best possible list of min(k, |relevant|) hits.

    Binary gains (Järvelin & Kekäläinen, TOIS 2002).
    """
    discount = 1.0 / np.log2(np.arange(hits.shape[1]) + 2.0)
    best = np.concatenate([[0.0], np.cumsum(discount)])
    return np.asarray(hits @ discount / best[np.minimum(relevant, hits.shape[1])])


def mrr(hits: Hits, relevant: PerUser) -> PerUser:
    """Reciprocal rank: `1 / rank` of the first hit, 0 without one (Voorhees, TREC-8, 1999)."""
    del relevant
    return np.asarray(hits.any(axis=1) / (hits.argmax(axis=1) + 1.0))


def average_precision(hits: Hits, relevant: PerUser) -> PerUser:
    """`Σ_hits (hits up to this rank / rank) / min(k, |relevant|)`; its mean over users is MAP.

    The divisor is what a perfect list of k reaches, so that it scores 1 (RecBole's too); TREC's |relevant| would not.
    """
    rank = np.arange(1, hits.shape[1] + 1)
    precision_at_hits = np.where(hits, np.cumsum(hits, axis=1) / rank, 0.0)
    return np.asarray(precision_at_hits.sum(axis=1) / np.minimum(relevant, hits.shape[1]))


def hit(hits: Hits, relevant: PerUser) -> PerUser:
    """1 if the list holds any relevant item."""
    del relevant
    return np.asarray(hits.any(axis=1), dtype=np.float64)


ACCURACY: dict[str, Callable[[Hits, PerUser], PerUser]] = {
    "recall": recall,
    "precision": precision,
    "ndcg": ndcg,
    "mrr": mrr,
    "map": average_precision,
    "hit": hit,
}
