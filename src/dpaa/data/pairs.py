"""Distinct (user, item) pairs as two sorted arrays of indices, the fingerprint of several, and popularity.

Popularity comes from training pairs only: the popular / niche split, its deciles, and recent popularity.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
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
        # The largest index here, not the catalogue's size, which is not known: keys do not leave this function.
        n_items = int(items.max()) + 1 if items.size else 0
        keys = users.astype(np.int64) * n_items + items
        if count is None:
            keys, counts = np.unique(keys), None
        else:
            keys, index = np.unique(keys, return_inverse=True)
            counts = np.bincount(index, weights=np.asarray(count), minlength=len(keys)).astype(np.int32)
        return replace(cls.from_keys(keys, max(n_items, 1)), count=counts)

    @classmethod
    def from_keys(cls, keys: npt.NDArray[np.int64], n_items: int) -> Pairs:
        """Decode what `keys` returned, or some of it.

        Parameters
        ----------
        keys : (n,) `user · n_items + item`, ascending and distinct
        n_items : how many

        Returns
        -------
        the pairs
        """
        return cls((keys // n_items).astype(np.int32), (keys % n_items).astype(np.int32))

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


def positions_within(lengths: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Count 0, 1, … through rows of these lengths, which stand one after the other.  (Σ lengths,)."""
    return np.asarray(np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths))


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
            # Lengths before content: the ids `ab`, `c` and `a`, `bc` would have one digest otherwise.
            lengths = ids.str.len_bytes().cast(pl.Int64).to_numpy().astype("<i8")
            feed(lengths)
            digest.update(int(lengths.sum()).to_bytes(8, "little"))
            # By slices: one text of all ids would take as much memory as the ids themselves.
            for first in range(0, len(ids), AT_ONCE):
                digest.update("".join(ids.slice(first, AT_ONCE).to_list()).encode())
        else:
            feed(ids.to_numpy().astype("<i8" if ids.dtype == pl.Int64 else "<u8"))
    for array in arrays:
        feed(b"none" if array is None else np.ascontiguousarray(array, dtype="<i4"))
    return digest.hexdigest()


POPULAR_SHARE = 0.8
"""Popular items cover this share of the training interactions."""


def popular_items(counts: npt.NDArray[Any], share: float = POPULAR_SHARE) -> npt.NDArray[np.bool_]:
    """The smallest set of most-interacted items that covers `share` of all interactions; ties by lower index.

    Items that tie where the set is full are told apart by their index, which is the order of their ids: a stable sort,
    so that the same data has the same popular items on every machine (`docs/metrics.md`, "Ties at the cut").  Returns
    (n_items,) bool; an item without interactions is never popular.
    """
    # An item belongs to the set where those before it do not cover the share yet: the last one may overshoot.
    order = np.argsort(-counts, kind="stable")
    before = np.concatenate([[0], np.cumsum(counts[order])[:-1]])
    popular = np.zeros(len(counts), dtype=bool)
    popular[order[before < share * counts.sum()]] = True
    return popular & (counts > 0)


def popularity_deciles(counts: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Tenths of the items that occur in training, rare (0) → popular (9), ties by lower index; −1 for the others.

    Returns (n_items,).
    """
    order = np.argsort(counts, kind="stable")
    order = order[counts[order] > 0]
    decile = np.full(len(counts), -1, dtype=np.int64)
    decile[order] = np.arange(len(order)) * 10 // max(len(order), 1)
    return decile


def mean_by_decile(values: npt.NDArray[Any], decile: npt.NDArray[Any]) -> list[float | None]:
    """Mean of the values in each of the ten deciles, rare → popular; None for one without values."""
    numbers, sums = np.bincount(decile, minlength=10), np.bincount(decile, values, minlength=10)
    return [float(total / n) if n else None for total, n in zip(sums, numbers, strict=True)]


def recent_popularity(
    item: npt.NDArray[Any], time: npt.NDArray[Any], n_items: int, count: npt.NDArray[Any] | None = None
) -> npt.NDArray[np.float32]:
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
