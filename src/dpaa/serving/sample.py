"""Lists of some users, from which gauges are read: who gets an item, and how popular and varied lists are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaa.evaluation.concentration import gini
from dpaa.ranking.reranker import Reranker
from dpaa.serving.engine import Answer, Ask
from dpaa.serving.snapshot import Snapshot

MOST_USERS = 200


@dataclass(frozen=True, eq=False)
class Lists:
    """The lists of a sample at one κ."""

    snapshot: Snapshot
    kappa: float
    k: int
    users: NDArray[Any]
    items: list[NDArray[Any]]

    def numbers(self) -> dict[str, float | None]:
        """By the names of metrics, over the sample."""
        found, k = self.snapshot, self.k
        every = np.concatenate([*self.items, np.empty(0, dtype=np.int64)]).astype(np.int64)
        counts = np.bincount(every, minlength=len(found.items))
        if found.model.candidates is not None:
            counts = counts[found.model.candidates]
        shares = [float(np.mean(~found.popular[one])) for one in self.items if len(one)]
        popularity = [float(np.mean(found.counts[one])) for one in self.items if len(one)]
        return {
            f"aplt@{k}": float(np.mean(shares)) if shares else None,
            f"arp@{k}": float(np.mean(popularity)) if popularity else None,
            f"head_share@{k}": float(np.mean(found.head[every])) if len(every) else None,
            f"coverage@{k}": float(np.count_nonzero(counts) / len(counts)),
            f"gini@{k}": gini(counts) if counts.sum() else None,
        }

    def who_gets(self, item: int, most: int) -> tuple[int, list[int]]:
        """How many of the sample have an item in their lists, and some of them."""
        who = [int(user) for user, one in zip(self.users, self.items, strict=True) if item in one]
        return len(who), who[:most]


def sampled_users(snapshot: Snapshot, most: int = MOST_USERS) -> NDArray[Any]:
    """Users with training pairs, evenly spaced."""
    warm = np.flatnonzero(snapshot.model.method.graph.user_degree.numpy())
    return warm if len(warm) <= most else warm[np.linspace(0, len(warm) - 1, most).round().astype(np.int64)]


def sample_asks(
    snapshot: Snapshot, users: NDArray[Any], kappa: float, k: int, reranker: Reranker | None = None
) -> list[Ask]:
    """Their questions."""
    return [Ask(snapshot, k, number=int(user), kappa=kappa, reranker=reranker) for user in users]


def lists_of(snapshot: Snapshot, users: NDArray[Any], kappa: float, k: int, answers: Sequence[Answer]) -> Lists:
    """The sample from its answers."""
    return Lists(snapshot, kappa, k, users, [one.items for one in answers])
