"""One formula each, for all users at once.

`hits` is (users, k) bool: whether the item at that rank is relevant; `relevant` is (users,): how many relevant items
the user has.  Each returns one number per user, in [0, 1], larger is better.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Hits = NDArray[np.bool_]
    PerUser = NDArray[Any]


def recall(hits: Hits, relevant: PerUser) -> PerUser:
    """`hits / |relevant|`; not divided by min(k, |relevant|): see deviations.md, "Recall"."""
    return np.asarray(hits.sum(axis=1) / relevant)


def ndcg(hits: Hits, relevant: PerUser) -> PerUser:
    """`Σ_hits 1/log2(rank + 1)` over the same sum for the best possible list of min(k, |relevant|) hits."""
    discount = 1.0 / np.log2(np.arange(hits.shape[1]) + 2.0)
    best = np.concatenate([[0.0], np.cumsum(discount)])
    return np.asarray(hits @ discount / best[np.minimum(relevant, hits.shape[1])])


def hit(hits: Hits, relevant: PerUser) -> PerUser:
    """1 if the list holds any relevant item."""
    del relevant
    return np.asarray(hits.any(axis=1), dtype=np.float64)


ACCURACY: dict[str, Callable[[Hits, PerUser], PerUser]] = {"recall": recall, "ndcg": ndcg, "hit": hit}
