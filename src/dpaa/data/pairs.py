"""Distinct (user, item) pairs as two sorted arrays of indices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Distinct (user, item) index pairs, sorted by user, then item."""

    user: Indices
    """(n,)"""
    item: Indices
    """(n,)"""
    count: Indices | None = None
    """(n,): how often each pair occurred; None = once each."""

    @classmethod
    def of(cls, user: npt.ArrayLike, item: npt.ArrayLike, count: npt.ArrayLike | None = None) -> Pairs:
        """Pairs from arrays in any order; repeated pairs become one, and their counts are added."""
        users, items = np.asarray(user, dtype=np.int32), np.asarray(item, dtype=np.int32)
        if users.shape != items.shape or users.ndim != 1:
            raise ValueError(f"user and item must be arrays of one length, got shapes {users.shape} and {items.shape}")
        n_items = int(items.max()) + 1 if items.size else 0
        keys = users.astype(np.int64) * n_items + items
        if count is None:
            keys = np.unique(keys)
            counts = None
        else:
            keys, place = np.unique(keys, return_inverse=True)
            counts = np.bincount(place, weights=np.asarray(count), minlength=len(keys)).astype(np.int32)
        if not len(keys):
            return cls(users[:0], items[:0], counts)
        return cls((keys // n_items).astype(np.int32), (keys % n_items).astype(np.int32), counts)

    def __len__(self) -> int:
        return len(self.user)

    def indptr(self, n_users: int) -> npt.NDArray[np.int64]:
        """Where each user's items begin in `item`. Returns (n_users + 1,)."""
        per_user = np.bincount(self.user, minlength=n_users)
        return np.concatenate(([0], np.cumsum(per_user))).astype(np.int64)

    def keys(self, n_items: int) -> npt.NDArray[np.int64]:
        """`user · n_items + item`, ascending: one integer per pair, for set operations. Returns (n,)."""
        return self.user.astype(np.int64) * n_items + self.item


def shared_keys(one: Pairs, other: Pairs, n_items: int) -> npt.NDArray[np.int64]:
    """Keys (`user · n_items + item`) of the pairs that are in both, ascending."""
    return np.intersect1d(one.keys(n_items), other.keys(n_items), assume_unique=True)
