"""Distinct (user, item) pairs as two sorted arrays of indices, and the fingerprint of several."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from dpaa.data.ids import is_text, kind

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
        """Make pairs from arrays in any order; repeated pairs become one, and their counts are added.

        Parameters
        ----------
        user, item : (n,) indices
        count : (n,) how often each pair occurred; 1 by default

        Returns
        -------
        the pairs, by user and then by item
        """
        users, items = np.asarray(user, dtype=np.int32), np.asarray(item, dtype=np.int32)
        if users.shape != items.shape or users.ndim != 1:
            raise ValueError(f"user and item must be arrays of one length, got shapes {users.shape} and {items.shape}")
        n_items = int(items.max()) + 1 if items.size else 0
        keys = users.astype(np.int64) * n_items + items
        if count is None:
            keys = np.unique(keys)
            counts = None
        else:
            keys, index = np.unique(keys, return_inverse=True)
            counts = np.bincount(index, weights=np.asarray(count), minlength=len(keys)).astype(np.int32)
        if not len(keys):
            return cls(users[:0], items[:0], counts)
        return cls((keys // n_items).astype(np.int32), (keys % n_items).astype(np.int32), counts)

    def __len__(self) -> int:
        return len(self.user)

    def sizes(self) -> dict[str, int]:
        """Count the pairs, and the users and items among them.

        Returns
        -------
        `pairs`, `users` and `items`
        """
        distinct = {}
        for key, index in (("users", self.user), ("items", self.item)):
            seen = np.zeros(int(index.max(initial=-1)) + 1, dtype=bool)  # a hash set of the indices would be larger
            seen[index] = True
            distinct[key] = int(seen.sum())
        return {"pairs": len(self), **distinct}

    def indptr(self, n_users: int) -> npt.NDArray[np.int64]:
        """Compute where each user's items begin in `item`.

        Parameters
        ----------
        n_users : how many, those without pairs included

        Returns
        -------
        (n_users + 1,)
        """
        per_user = np.bincount(self.user, minlength=n_users)
        return np.concatenate(([0], np.cumsum(per_user))).astype(np.int64)

    def keys(self, n_items: int) -> npt.NDArray[np.int64]:
        """Encode each pair as one integer, `user · n_items + item`, for set operations.

        Parameters
        ----------
        n_items : how many

        Returns
        -------
        (n,) ascending
        """
        return self.user.astype(np.int64) * n_items + self.item


AT_ONCE = 100_000


def fingerprint(user_ids: pl.Series, item_ids: pl.Series, arrays: Iterable[Indices | None]) -> str:
    """Compute the fingerprint of a dataset.

    Parameters
    ----------
    user_ids, item_ids : ascending
    arrays : users and items of every split in their order, training counts, candidates and further pairs, if any

    Returns
    -------
    64 hexadecimal digits
    """
    digest = hashlib.sha256()

    def feed(content: Any) -> None:
        digest.update(memoryview(content).nbytes.to_bytes(8, "little"))
        digest.update(content)

    for ids in (user_ids, item_ids):
        feed(kind(ids).encode())
        if is_text(ids):
            lengths = ids.str.len_bytes().cast(pl.Int64).to_numpy().astype("<i8")
            feed(lengths)
            digest.update(int(lengths.sum()).to_bytes(8, "little"))
            for first in range(0, len(ids), AT_ONCE):
                digest.update("".join(ids.slice(first, AT_ONCE).to_list()).encode())
        else:
            feed(ids.to_numpy().astype("<i8" if ids.dtype == pl.Int64 else "<u8"))
    for array in arrays:
        feed(b"none" if array is None else np.ascontiguousarray(array, dtype="<i4"))
    return digest.hexdigest()
