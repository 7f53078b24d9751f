"""A log becomes train, validation and test. Each rule labels every pair once: 0 train, 1 validation, 2 test."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from dpaa.data.columns import Column, SplitName
from dpaa.data.ids import distinct_ids, encode
from dpaa.data.pairs import Indices
from dpaa.errors import InputError, need_whole
from dpaa.words import counted

SPLIT_KINDS = ("random", "random-global", "temporal", "leave-last")
Labels = npt.NDArray[np.int8]
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SplitRule:
    """How a log is cut into train, validation and test."""

    kind: str = "random"
    """`random` per user, `random-global` over all pairs, `temporal` by time, `leave-last` pairs of each user."""
    valid: float = 0.1
    """Share of the pairs for validation (not used by `leave-last`)."""
    test: float = 0.2
    """Share of the pairs for the test (not used by `leave-last`)."""
    last_k: int = 1
    """Pairs of each user for validation, and as many for the test (`leave-last`)."""

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or self.kind not in SPLIT_KINDS:
            raise InputError(f"there is no split {self.kind!r}; choose one of {', '.join(SPLIT_KINDS)}")
        if not (0 <= self.valid < 1 and 0 <= self.test < 1 and self.valid + self.test < 1):
            raise InputError(
                f"the shares of validation ({self.valid:g}) and test ({self.test:g}) must be at least 0 and leave "
                "something to train on; make their sum less than 1"
            )
        if self.last_k < 1:
            raise InputError(f"last_k must be at least 1, got {self.last_k}; leave it out for 1")

    def __str__(self) -> str:
        if self.kind == "leave-last":
            return f"leave-last, {self.last_k} + {self.last_k} per user"
        return f"{self.kind}, {self.valid:g} validation, {self.test:g} test"


def split_frame(
    frame: pl.DataFrame, rule: SplitRule, seed: int, source: str
) -> tuple[dict[SplitName, pl.DataFrame], list[str]]:
    """The frames of the three splits, and what is to be said about them."""
    rng = np.random.default_rng(need_whole(seed, "seed", least=0))
    users = frame[Column.USER]
    notes: list[str] = []
    if rule.kind == "random":
        labels = random_per_user(encode(users, distinct_ids([users])), rule.valid, rule.test, rng)
    elif rule.kind == "random-global":
        labels = random_global(frame.height, rule.valid, rule.test, rng)
    else:
        if Column.TIMESTAMP not in frame.columns:
            raise InputError(f"the split {rule.kind!r} needs times, and {source} has none; name the --timestamp-column")
        time = frame[Column.TIMESTAMP].to_physical().to_numpy()
        if rule.kind == "temporal":
            labels, tied = temporal(time, rule.valid, rule.test)
            if tied:
                pairs = counted(tied, "pair", "pairs")
                notes.append(f"{pairs} at the time of a cut went to the earlier split, so the shares are not exact")
        else:
            labels = leave_last(encode(users, distinct_ids([users])), time, rule.last_k)
    parts = [frame.filter(pl.Series(labels == label)) for label in range(3)]
    once = [part.drop(Column.COUNT, strict=False) for part in parts[1:]]
    return {"train": parts[0], "valid": once[0], "test": once[1]}, notes


def random_per_user(user: Indices, valid: float, test: float, rng: np.random.Generator) -> Labels:
    """Random pairs of each user; shares hold on average, and every user keeps a training pair. Returns (n,)."""
    per_user = np.bincount(user)
    n_test = (per_user * test + rng.random(len(per_user))).astype(np.int64)
    n_valid = (per_user * valid + rng.random(len(per_user))).astype(np.int64)
    return _label_first(user, rng.permutation(len(user)), n_valid, n_test)


def random_global(n: int, valid: float, test: float, rng: np.random.Generator) -> Labels:
    """Random pairs of all; some users may be left without a training pair. Returns (n,)."""
    n_test, n_valid = round(n * test), round(n * valid)
    labels = np.zeros(n, dtype=np.int8)
    order = rng.permutation(n)
    labels[order[:n_test]] = 2
    labels[order[n_test : n_test + n_valid]] = 1
    return labels


def temporal(time: npt.NDArray[np.generic], valid: float, test: float) -> tuple[Labels, int]:
    """The latest pairs of all; pairs with the time of a cut go to the earlier split. Returns (n,) and their number."""
    n = len(time)
    in_order = np.sort(time)
    labels = np.zeros(n, dtype=np.int8)
    n_test = round(n * test)
    n_later = round(n * (valid + test))
    tied = 0
    for label, size in ((1, n_later if n_later > n_test else 0), (2, n_test)):
        if 0 < size < n:
            later = time > in_order[n - size - 1]
            labels[later] = label
            tied += size - int(later.sum())
    return labels, tied


def leave_last(user: Indices, time: npt.NDArray[np.generic], k: int) -> Labels:
    """The last k pairs of each user for the test, k before them for validation, by time, then by position.

    A user with few pairs keeps one for training first, then gives to the test, then to validation. Returns (n,).
    """
    return _label_first(user, np.lexsort((time, user))[::-1], k, k)


def _label_first(user: Indices, order: Counts, n_valid: Counts | int, n_test: Counts | int) -> Labels:
    """In this order, the first `n_test` pairs of each user are test, the next `n_valid` validation; one is training."""
    per_user = np.bincount(user)
    n_test = np.minimum(n_test, np.maximum(per_user - 1, 0))
    n_valid = np.minimum(n_valid, np.maximum(per_user - 1 - n_test, 0))
    order = order[np.argsort(user[order], kind="stable")]
    who = user[order]
    rank = np.arange(len(user)) - (np.cumsum(per_user) - per_user)[who]
    labels = np.zeros(len(user), dtype=np.int8)
    labels[order] = np.where(rank < n_test[who], 2, np.where(rank < (n_test + n_valid)[who], 1, 0))
    return labels


def drop_rare(frame: pl.DataFrame, min_user: int, min_item: int) -> tuple[pl.DataFrame, list[str]]:
    """The largest part in which every user has `min_user` pairs and every item `min_item`, and what was dropped."""
    if min_user <= 1 and min_item <= 1:
        return frame, []
    user = encode(frame[Column.USER], distinct_ids([frame[Column.USER]]))
    item = encode(frame[Column.ITEM], distinct_ids([frame[Column.ITEM]]))
    kept = np.arange(frame.height)
    while len(kept):
        enough = (np.bincount(user[kept])[user[kept]] >= min_user) & (np.bincount(item[kept])[item[kept]] >= min_item)
        if enough.all():
            break
        kept = kept[enough]
    if not len(kept):
        raise InputError(
            f"no pair is left when every user must have {min_user} interactions and every item {min_item}; "
            "lower --min-user or --min-item"
        )
    if len(kept) == frame.height:
        return frame, []
    gone = [
        f"{dropped:,} {what} with fewer than {least} interactions"
        for what, index, least in (("users", user, min_user), ("items", item, min_item))
        if (dropped := len(np.unique(index)) - len(np.unique(index[kept])))
    ]
    return frame[kept], [f"{' and '.join(gone)} were dropped, {frame.height - len(kept):,} pairs in all"]
