"""Distinct (user, item) pairs as two sorted arrays of indices, the fingerprint of several, and notes about them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

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


AT_ONCE = 100_000
Blocks = tuple[int, Iterable[Indices]] | None
"""An array: how many numbers it has, and these, block by block; None where there is none."""


def fingerprint(user_ids: pl.Series, item_ids: pl.Series, arrays: Iterable[Blocks]) -> str:
    """Compute the fingerprint.

    Parameters
    ----------
    user_ids, item_ids : ascending
    arrays : users and items of every split in their order, training counts, candidates and further pairs, if any

    Returns
    -------
    64 hexadecimal digits
    """
    digest = hashlib.sha256()

    def feed(length: int, content: Iterable[bytes]) -> None:
        digest.update(length.to_bytes(8, "little"))
        for block in content:
            digest.update(block)

    for ids in (user_ids, item_ids):
        feed(len(kind(ids)), [kind(ids).encode()])
        if is_text(ids):
            lengths = ids.str.len_bytes().cast(pl.Int64).to_numpy()
            feed(8 * len(ids), [lengths.astype("<i8").tobytes()])
            texts = ("".join(ids.slice(first, AT_ONCE).to_list()).encode() for first in range(0, len(ids), AT_ONCE))
            feed(int(lengths.sum()), texts)
        else:
            feed(8 * len(ids), [ids.to_numpy().astype("<i8" if ids.dtype == pl.Int64 else "<u8").tobytes()])
    for array in arrays:
        if array is None:
            feed(4, [b"none"])
        else:
            feed(4 * array[0], (np.ascontiguousarray(block, dtype="<i4").tobytes() for block in array[1]))
    return digest.hexdigest()


def lint(
    users: Sequence[Indices],
    items: Sequence[Indices],
    user_ids: pl.Series,
    item_ids: pl.Series,
    candidates: Indices | None = None,
) -> list[str]:
    """Note empty splits, and users and items without a training pair.

    Parameters
    ----------
    users, items : indices that occur in training, validation and test
    user_ids, item_ids : ids of the indices
    candidates : indices of the items that may be recommended; None = all

    Returns
    -------
    sentences
    """
    notes = [] if len(users[1]) else ["the validation split is empty: early stopping and tuning are impossible"]
    notes += [] if len(users[2]) else ["the test split is empty: nothing can be evaluated"]
    nothing, by_chance = np.zeros(0, dtype=np.int32), "they are ranked by chance"
    for what, ids, trained, used, effect in (
        ("test users", user_ids, users[0], users[2], "nothing was learned about them"),
        ("candidate items", item_ids, items[0], nothing if candidates is None else candidates, by_chance),
        ("test items", item_ids, items[0], items[2], by_chance),
    ):
        cold = np.setdiff1d(used, trained)
        if len(cold):
            share = f"{len(cold):,} of {len(np.unique(used)):,} {what}"
            notes.append(f"{share} have no training pair (such as {ids[int(cold[0])]!r}): {effect}")
    return notes
