r"""A log becomes train, validation and test. Each rule labels every pair once: 0 train, 1 validation, 2 test.

Labels depend on ids, times and the seed alone, never on the order of rows. What is random is the MD5 digest of a text,
which SQL can compute too; "number" is its first 16 hexadecimal digits, "second number" the other 16:

- a pair, `seed\0user id\0item id`: pairs with the smallest numbers are test, the next are validation
- a user, `seed\0user id`: as fractions of 1, the two numbers round the user's test and validation pairs up or down
- a cold user or item, `seed\0id`; the fold of a user, `seed\0fold\0user id`

Where a rule goes by time, pairs of one time are in the order of their item ids (of their numbers, where users or items
are cold).
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt
import polars as pl

from dpaa._text import counted
from dpaa.data.columns import Column, SplitName
from dpaa.data.ids import distinct_ids, encode
from dpaa.data.pairs import Indices
from dpaa.errors import InputError, need_whole

SPLIT_KINDS = (
    *("random", "random-global", "temporal", "leave-last"),
    *("user-folds", "cold-users", "cold-items", "time-windows"),
)
IN_PARTS = ("user-folds", "time-windows")
"""Kinds that make several datasets of one log, one for each part."""
BY_TIME = ("temporal", "leave-last", "time-windows")
"""Kinds that need times."""
LEFT_OUT = -1
Labels = npt.NDArray[np.int8]
Counts = npt.NDArray[np.int64]
Order = npt.NDArray[np.int32 | np.int64]
AT_ONCE = 4_000_000
"""Pairs that are ranked together."""
LOOKED_AT = 1_000_000
"""Pairs whose owners are looked up, or whose numbers are made, together."""
Numbers = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class SplitRule:
    """How a log is cut into train, validation and test."""

    kind: str = "random"
    """`random` per user, `random-global` over all pairs, `temporal` by time, `leave-last` pairs of each user,
    `user-folds`, `cold-users`, `cold-items` or `time-windows`."""
    valid: float = 0.1
    """Share of the pairs for validation (not used by `leave-last`); of users or items where they are cold."""
    test: float = 0.2
    """The same for the test."""
    last_k: int = 1
    """Pairs of each user for validation, and as many for the test (`leave-last`)."""
    parts: int = 5
    """How many folds or windows there are."""
    part: int = 1
    """Which of them this is, from 1."""
    support: int = 5
    """Pairs of a cold user or item that stay in training."""

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
        need_whole(self.support, "support", least=0)
        need_whole(self.part, "part")
        if need_whole(self.parts, "parts") < 2 or self.part > self.parts:
            raise InputError(f"part {self.part} of {self.parts} is not there; parts are at least 2 and counted from 1")
        if self.kind == "time-windows" and self.valid + self.parts * self.test >= 1:
            raise InputError(
                f"{self.parts} windows with {self.test:g} of the pairs each and validation ({self.valid:g}) leave "
                "nothing to train on; use fewer parts or smaller shares"
            )

    def each(self) -> list[SplitRule]:
        """One rule for every part; the rule itself where it has none."""
        return [replace(self, part=part) for part in range(1, self.parts + 1)] if self.kind in IN_PARTS else [self]

    @property
    def needs_times(self) -> bool:
        """Whether every pair must have a time."""
        return self.kind in BY_TIME

    def __str__(self) -> str:
        shares = f"{self.valid:g} validation, {self.test:g} test"
        return {
            "leave-last": f"leave-last, {self.last_k} + {self.last_k} per user",
            "user-folds": f"user-folds, fold {self.part} of {self.parts}, {shares} of a user's pairs",
            "cold-users": f"cold-users, {shares} of the users, who keep {self.support} pairs in training",
            "cold-items": f"cold-items, {shares} of the items, which keep {self.support} pairs in training",
            "time-windows": f"time-windows, window {self.part} of {self.parts}, {shares}",
        }.get(self.kind, f"{self.kind}, {shares}")


def split_frame(
    frame: pl.DataFrame,
    rule: SplitRule,
    seed: int,
    source: str,
    before: pl.DataFrame | None = None,
    times_appended: int = 0,
) -> tuple[dict[SplitName, pl.DataFrame], list[str]]:
    """The frames of the three splits, and what is to be said about them.

    `before` are training pairs that were there already, where a log is appended: who has some can give every new one.
    """
    need_whole(seed, "seed", least=0)
    check_times(rule, Column.TIMESTAMP in frame.columns, source)
    if rule.kind in BY_TIME and (missing := frame[Column.TIMESTAMP].null_count()):
        pairs = counted(missing, "pair of", "pairs of")
        raise InputError(f"the split {rule.kind!r} needs times, and {pairs} {source} have none; add or remove them")
    frame = frame.sort(Column.USER, Column.ITEM)
    labels, notes = label(FrameWork(rule, seed, times_appended, frame, before))
    parts = [frame.filter(pl.Series(labels == label)) for label in range(3)]
    once = [part.drop(Column.COUNT, strict=False) for part in parts[1:]]
    return {"train": parts[0], "valid": once[0], "test": once[1]}, notes


def check_times(rule: SplitRule, there: bool, source: str) -> None:
    """Refuse a rule that needs times where there are none."""
    if rule.kind in BY_TIME and not there:
        raise InputError(f"the split {rule.kind!r} needs times, and {source} has none; name the --timestamp-column")


@dataclass(frozen=True, eq=False)
class Work(ABC):
    """What a rule labels, and by what; pairs are sorted by user and item."""

    rule: SplitRule
    seed: int
    times_appended: int

    @property
    @abstractmethod
    def has_times(self) -> bool:
        """Whether they have times."""

    @property
    @abstractmethod
    def time(self) -> npt.NDArray[np.generic]:
        """Of every pair.  (n_pairs,)."""

    @abstractmethod
    def ids(self, column: str) -> pl.Series:
        """Distinct ids, ascending."""

    @abstractmethod
    def owners(self, column: str) -> Indices:
        """Of every pair, the place of its id among them.  (n_pairs,)."""

    @abstractmethod
    def trained(self, column: str) -> Counts:
        """Training pairs that each id has already.  Returns (ids,)."""

    @property
    @abstractmethod
    def numbers(self) -> Numbers:
        """Of every pair, `pair_numbers`.  (n_pairs,)."""


@dataclass(frozen=True, eq=False)
class FrameWork(Work):
    """Pairs in a frame."""

    frame: pl.DataFrame
    before: pl.DataFrame | None

    @property
    def has_times(self) -> bool:
        """Whether it has the column."""
        return Column.TIMESTAMP in self.frame.columns

    @property
    def time(self) -> npt.NDArray[np.generic]:
        """As numbers."""
        return self.frame[Column.TIMESTAMP].to_physical().to_numpy()

    def ids(self, column: str) -> pl.Series:
        """Of the frame."""
        return distinct_ids([self.frame[column]])

    def owners(self, column: str) -> Indices:
        """Of the frame."""
        return encode(self.frame[column], self.ids(column))

    def trained(self, column: str) -> Counts:
        """Of those that were there before."""
        ids = self.ids(column)
        if self.before is None:
            return np.zeros(len(ids), dtype=np.int64)
        index = encode(self.before[column], ids)
        return np.bincount(index[index >= 0], minlength=len(ids))

    @property
    def numbers(self) -> Numbers:
        """Of its rows."""
        return pair_numbers(self.frame[Column.USER], self.frame[Column.ITEM], self.seed)


def label(work: Work) -> tuple[Labels, list[str]]:
    """The label of every pair, and what is to be said about them."""
    return _LABELS[work.rule.kind](work)


def _random(work: Work) -> tuple[Labels, list[str]]:
    known = work.trained(Column.USER) > 0
    # Users who append a pair a day would else always give the test all of them, or none.
    seed = f"{work.seed}+{work.times_appended}" if work.times_appended else work.seed
    chances = drawn_by_id(work.ids(Column.USER), seed)
    return random_per_user(work.owners(Column.USER), work.numbers, chances, work.rule.valid, work.rule.test, known), []


def _random_global(work: Work) -> tuple[Labels, list[str]]:
    numbers = work.numbers
    n_test, n_valid = round(len(numbers) * work.rule.test), round(len(numbers) * work.rule.valid)
    labels = np.zeros(len(numbers), dtype=np.int8)
    for label, size in ((1, n_test + n_valid), (2, n_test)):
        if size:
            labels[numbers <= np.partition(numbers, size - 1)[size - 1]] = label
    return labels, []


def _temporal(work: Work) -> tuple[Labels, list[str]]:
    labels, tied = temporal(work.time, work.rule.valid, work.rule.test)
    return labels, _tie_note(tied)


def _leave_last(work: Work) -> tuple[Labels, list[str]]:
    return leave_last(work.owners(Column.USER), work.time, work.rule.last_k), []


def _user_folds(work: Work) -> tuple[Labels, list[str]]:
    rule, owner = work.rule, work.owners(Column.USER)
    fold = (drawn_by_id(work.ids(Column.USER), f"{work.seed}\0fold")[0] * rule.parts).astype(np.int64)[owner]
    labels = _random(work)[0]
    labels[(labels == 2) & (fold != rule.part - 1)] = 0
    labels[(labels == 1) & (fold != rule.part % rule.parts)] = 0
    return labels, []


def _cold(work: Work, column: str) -> tuple[Labels, list[str]]:
    rule, owner = work.rule, work.owners(column)
    drawn = drawn_by_id(work.ids(column), work.seed)[0]
    kind = np.where(drawn < rule.test, 2, np.where(drawn < rule.test + rule.valid, 1, 0)).astype(np.int8)
    by = (work.numbers, work.time) if work.has_times else (work.numbers,)
    support = np.maximum(rule.support - work.trained(column), 0)
    labels = np.zeros(len(owner), dtype=np.int8)
    for pairs, rank in _ranks(owner, by):
        of = owner[pairs]
        labels[pairs] = np.where(rank < support[of], np.int8(0), kind[of])
    cold = int((kind > 0).sum())
    what = "users" if column == Column.USER else "items"
    return labels, [f"{cold:,} of {len(kind):,} {what} are cold: they keep at most {rule.support} pairs in training"]


def _time_windows(work: Work) -> tuple[Labels, list[str]]:
    rule = work.rule
    labels, tied = time_window(work.time, rule.valid, rule.test, rule.parts, rule.part)
    later = int((labels == LEFT_OUT).sum())
    left = [f"{counted(later, 'pair', 'pairs')} after the window were left out"] if later else []
    return labels, [*_tie_note(tied), *left]


def _tie_note(tied: int) -> list[str]:
    if not tied:
        return []
    pairs = counted(tied, "pair", "pairs")
    return [f"{pairs} at the time of a cut went to the earlier split, so the shares are not exact"]


_LABELS: dict[str, Callable[[Work], tuple[Labels, list[str]]]] = {
    "random": _random,
    "random-global": _random_global,
    "temporal": _temporal,
    "leave-last": _leave_last,
    "user-folds": _user_folds,
    "cold-users": partial(_cold, column=Column.USER),
    "cold-items": partial(_cold, column=Column.ITEM),
    "time-windows": _time_windows,
}


def pair_numbers(users: pl.Series, items: pl.Series, seed: int) -> Numbers:
    """A random number for each pair, from its ids and the seed alone.

    Parameters
    ----------
    users, items
        The ids of every pair.
    seed
        Another seed gives other numbers.

    Returns
    -------
    (n,) numbers below 2⁶⁴, uniform.
    """
    found = np.empty(len(users), dtype=np.uint64)
    for start in range(0, len(users), LOOKED_AT):
        part = slice(start, start + LOOKED_AT)
        ids = [one[part].cast(pl.String) for one in (users, items)]
        texts = pl.select(pl.concat_str(pl.lit(f"{seed}\0"), ids[0], pl.lit("\0"), ids[1]).cast(pl.Binary)).to_series()
        found[part] = _digests(texts)[0]
    return found


def drawn_by_id(ids: pl.Series, seed: int | str) -> npt.NDArray[np.float64]:
    """Two numbers from 0 to 1 for each id, from the id and the seed alone: the same whatever else is in a log.

    Parameters
    ----------
    ids
        Of users or items.
    seed
        Another seed gives other numbers.

    Returns
    -------
    (2, ids) numbers, each at least 0 and less than 1.
    """
    digests = _digests(f"{seed}\0{one}".encode() for one in ids)
    return (digests >> np.uint64(11)).astype(np.float64) / 2**53  # 53 bits: rounded to 1.0 there would be no such fold


def _digests(texts: Iterable[bytes]) -> Numbers:
    """Both halves of each text's MD5 digest, as numbers.  Returns (2, texts)."""
    whole = b"".join(hashlib.md5(text, usedforsecurity=False).digest() for text in texts)
    return np.frombuffer(whole, dtype=">u8").reshape(-1, 2).T.astype(np.uint64)


def random_per_user(
    user: Indices,
    numbers: Numbers,
    chances: npt.NDArray[np.float64],
    valid: float,
    test: float,
    known: npt.NDArray[np.bool_] | None = None,
) -> Labels:
    """Random pairs of each user; shares hold on average, and every user keeps a training pair.

    Parameters
    ----------
    user
        Of every pair.
    numbers
        Of every pair; those with the smallest are test.
    chances
        (2, users): which fractions of a pair are rounded up to one, for the test and for validation.
    valid, test
        Shares.
    known
        Users who have a training pair elsewhere.

    Returns
    -------
    (n,) labels.
    """
    per_user = _bincount(user)
    n_test = (per_user * test + chances[0]).astype(np.int64)
    n_valid = (per_user * valid + chances[1]).astype(np.int64)
    return _label_first(user, (numbers,), n_valid, n_test, known)


def random_global(n: int, valid: float, test: float, rng: np.random.Generator) -> Labels:
    """Random ones of n, by their positions, for what has an order of its own. Returns (n,)."""
    n_test, n_valid = round(n * test), round(n * valid)
    labels = np.zeros(n, dtype=np.int8)
    order = _permutation(n, rng)
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

    Positions are those of pairs sorted by item, so that of pairs at one time the last has the largest item id.

    A user with few pairs keeps one for training first, then gives to the test, then to validation. Returns (n,).
    """
    return _label_first(user, (time,), k, k, from_the_end=True)


def time_window(time: npt.NDArray[np.generic], valid: float, test: float, parts: int, part: int) -> tuple[Labels, int]:
    """One of several windows that slide to the end of the log: test pairs, validation before them, training before.

    The test windows of all parts lie side by side at the end. Pairs after the window are `LEFT_OUT`; those with the
    time of a cut go to the earlier split. Returns (n,) and the number of those.
    """
    n, in_order = len(time), np.sort(time)
    n_test, n_valid = round(n * test), round(n * valid)
    end = n - n_test * (parts - part)
    labels, tied = np.full(n, LEFT_OUT, dtype=np.int8), 0
    for label, size in ((2, end), (1, end - n_test), (0, end - n_test - n_valid)):
        if size < 1:
            continue
        within = time <= in_order[size - 1]
        labels[within] = label
        tied += int(within.sum()) - size
    return labels, tied


def _label_first(
    user: Indices,
    by: tuple[npt.NDArray[np.generic], ...],
    n_valid: Counts | int,
    n_test: Counts | int,
    known: npt.NDArray[np.bool_] | None = None,
    from_the_end: bool = False,
) -> Labels:
    """The first `n_test` pairs of each user are test, the next `n_valid` validation; one is training.

    `by` as in `_ranks`. No pair need be training of a user who is `known`, with a training pair elsewhere.
    """
    per_user = _bincount(user)
    most = per_user - (1 if known is None else np.where(known, 0, 1))
    for_test: Counts = np.minimum(n_test, np.maximum(most, 0))
    for_both: Counts = for_test + np.minimum(n_valid, np.maximum(most - for_test, 0))
    labels = np.zeros(len(user), dtype=np.int8)
    for pairs, rank in _ranks(user, by):
        of = user[pairs]
        place = per_user[of] - 1 - rank if from_the_end else rank
        labels[pairs] = np.where(place < for_test[of], 2, np.where(place < for_both[of], 1, 0))
    return labels


def _ranks(owner: Indices, by: tuple[npt.NDArray[np.generic], ...]) -> Iterator[tuple[Order, Counts]]:
    """The place of each pair among those of its owner, from 0: pairs and places, some owners at a time.

    Pairs are ordered by the last array of `by`, equal ones by the one before it, then by position. Owners are taken
    together up to `AT_ONCE` pairs, so that what is needed beside the arguments stays small.
    """
    per_owner = _bincount(owner)
    ends = np.cumsum(per_owner)
    first = 0
    while first < len(per_owner):
        before = int(ends[first - 1]) if first else 0
        last = max(int(np.searchsorted(ends, before + AT_ONCE, side="right")), first + 1)
        pairs = _of_owners(owner, first, last)
        pairs = pairs[np.lexsort((*(one[pairs] for one in by), owner[pairs]))]
        starts = (ends - per_owner)[owner[pairs]] - before
        yield pairs, np.arange(len(pairs)) - starts
        first = last


def _of_owners(owner: Indices, first: int, last: int) -> Order:
    """The pairs of some owners, by position."""
    found = []
    for start in range(0, len(owner), LOOKED_AT):
        of = owner[start : start + LOOKED_AT]
        found.append(start + np.flatnonzero((of >= first) & (of < last)))
    return np.concatenate(found)


def _bincount(index: Indices) -> Counts:
    """`np.bincount`, which would copy the whole to 64 bits."""
    counts = np.zeros(int(index.max(initial=-1)) + 1, dtype=np.int64)
    step = max(LOOKED_AT, len(counts))
    for start in range(0, len(index), step):
        counts += np.bincount(index[start : start + step], minlength=len(counts))
    return counts


def _permutation(n: int, rng: np.random.Generator) -> Order:
    """`rng.permutation(n)`, by the same draws, in half the memory."""
    order: Order = np.arange(n, dtype=np.int32 if n < 2**31 else np.int64)
    rng.shuffle(order)
    return order


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
        raise none_left(min_user, min_item)
    if len(kept) == frame.height:
        return frame, []
    gone = [len(np.unique(index)) - len(np.unique(index[kept])) for index in (user, item)]
    return frame[kept], [rare_note(gone, (min_user, min_item), frame.height - len(kept))]


def none_left(min_user: int, min_item: int) -> InputError:
    """The sentence where all are rare."""
    return InputError(
        f"no pair is left when every user must have {min_user} interactions and every item {min_item}; "
        "lower --min-user or --min-item"
    )


def rare_note(gone: Sequence[int], least: tuple[int, int], pairs: int) -> str:
    """How many users and items were dropped, and with how many pairs."""
    told = [
        f"{dropped:,} {what} with fewer than {few} interactions"
        for what, dropped, few in zip(("users", "items"), gone, least, strict=True)
        if dropped
    ]
    return f"{' and '.join(told)} were dropped, {pairs:,} pairs in all"
