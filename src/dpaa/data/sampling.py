"""Training pairs become triples (user, positive item, negative item), a whole epoch at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaa.kernels.negatives import draw_missing, gap_keys, nth_missing

Ints = NDArray[Any]
BLOCK = 65_536


def _blocks(n: int) -> Iterator[slice]:
    """0..n−1 in blocks: the generator draws the same numbers, and what is needed for them stays small."""
    return (slice(first, min(first + BLOCK, n)) for first in range(0, n, BLOCK))


def _narrow(n: int) -> type[np.unsignedinteger[Any] | np.signedinteger[Any]]:
    """What the numbers 0..n are kept in: an epoch's triples are the largest thing of small tables."""
    return np.uint16 if n < 2**16 else np.int32


class TripleSampler:
    """Draws triples whose negative item is never a training item of the user.

    `user-uniform`: as many draws as there are interactions; a user uniformly with replacement, then one of the user's
    items.  A draw that falls on a user without items, or on one who took every item, is skipped, so an epoch may be
    slightly shorter.  `interaction`: every interaction once, in random order (a pair that counts n times, n times).
    """

    def __init__(self, users: Ints, items: Ints, counts: Ints, n_users: int, n_items: int) -> None:
        self.n_users, self.n_items = n_users, n_items
        self.n_interactions = int(counts.sum())
        self._users, self._items = users, items
        self._indptr = np.concatenate([[0], np.cumsum(np.bincount(users, minlength=n_users))])
        self._repeats = counts if self.n_interactions > len(items) else None
        self._count_ends = None if self._repeats is None else np.concatenate([[0], np.cumsum(counts)])
        taken = np.diff(self._indptr)
        self._usable = (taken > 0) & (taken < n_items)
        self.n_usable_users = int(self._usable.sum())
        self.users_without_items = int((taken == 0).sum())
        self.users_with_every_item = int((taken == n_items).sum())

    def epoch(self, rng: np.random.Generator, how: str) -> tuple[Ints, Ints, Ints]:
        """Users, positive and negative items of one epoch, shuffled; each (triples,), uint16 or int32."""
        users, positive = self._by_user(rng) if how == "user-uniform" else self._by_interaction(rng)
        return users, positive, self.draw_negative(rng, users, positive)

    def draw_negative(self, rng: np.random.Generator, users: Ints, positive: Ints) -> Ints:
        """An item the user did not take, uniformly.  Returns (users,)."""
        del positive
        keys = gap_keys(self._indptr, self._items, self.n_items)  # made again each epoch: quickly, and not kept
        negative = np.empty(len(users), _narrow(self.n_items))
        for part in _blocks(len(users)):
            negative[part] = draw_missing(rng, users[part], self._indptr, keys, self.n_items)
        return negative

    def _by_user(self, rng: np.random.Generator) -> tuple[Ints, Ints]:
        users = np.empty(self.n_interactions, _narrow(self.n_users))
        for part in _blocks(len(users)):
            users[part] = rng.integers(0, self.n_users, part.stop - part.start)
        users = users[self._usable[users]]
        positive = np.empty(len(users), _narrow(self.n_items))
        for part in _blocks(len(users)):
            positive[part] = self._items[self._slots(rng, users[part])]
        return users, positive

    def _slots(self, rng: np.random.Generator, users: Ints) -> Ints:
        """A pair of each user, in proportion to its count.  (users,)."""
        first, last = self._indptr[users], self._indptr[users + 1]
        ends = self._count_ends
        if ends is None:
            return rng.integers(first, last)
        return np.asarray(np.searchsorted(ends, rng.integers(ends[first], ends[last]), side="right") - 1)

    def _by_interaction(self, rng: np.random.Generator) -> tuple[Ints, Ints]:
        slots = np.arange(len(self._items), dtype=np.int32)
        if self._repeats is not None:
            slots = np.repeat(slots, self._repeats)
        slots = rng.permutation(slots[self._usable[self._users[slots]]])
        users, positive = self._users.astype(_narrow(self.n_users)), self._items.astype(_narrow(self.n_items))
        return users[slots], positive[slots]


class AnyItemSampler(TripleSampler):
    """The negative item is any item, also one that the user took."""

    def draw_negative(self, rng: np.random.Generator, users: Ints, positive: Ints) -> Ints:
        """Uniformly among all items.  Returns (users,)."""
        del positive
        return rng.integers(0, self.n_items, len(users)).astype(_narrow(self.n_items))


class BalancedSampler(TripleSampler):
    """The negative item is, by a fair coin, strictly more or strictly less popular than the positive one.

    Where the user left no such item, any item not taken.  Items are numbered by popularity, so both sides are ranges,
    and a uniform draw from the untaken part of a range is one binary search.
    """

    def __init__(self, users: Ints, items: Ints, counts: Ints, n_users: int, n_items: int) -> None:
        super().__init__(users, items, counts, n_users, n_items)
        popularity = np.bincount(items, counts, minlength=n_items)
        self._by_popularity = np.argsort(popularity, kind="stable")
        self._popularity, ascending = popularity, popularity[self._by_popularity]
        self._ascending = ascending
        self._first_as_popular = np.searchsorted(ascending, popularity, side="left")
        self._first_more_popular = np.searchsorted(ascending, popularity, side="right")
        place = np.empty(n_items, dtype=np.int64)
        place[self._by_popularity] = np.arange(n_items)
        self._taken = np.sort(users.astype(np.int64) * n_items + place[items])  # users ascending, then places
        self._place_keys = gap_keys(self._indptr, self._taken % n_items, n_items)

    def draw_negative(self, rng: np.random.Generator, users: Ints, positive: Ints) -> Ints:
        """By a fair coin from above or below the positive item's popularity.  Returns (users,)."""
        untaken = self.n_items - np.diff(self._indptr)[users]
        first = self._untaken_before(users, self._first_more_popular[positive])
        last = self._untaken_before(users, self._first_as_popular[positive])
        above = rng.random(len(users)) < 0.5
        return self._between(rng, users, np.where(above, first, 0), np.where(above, untaken, last))

    def _between(self, rng: np.random.Generator, users: Ints, low: Ints, high: Ints) -> Ints:
        """An untaken item by its rank among them, from low to below high; any where there is none.  (users,)."""
        untaken = self.n_items - np.diff(self._indptr)[users]
        nobody = low == high
        rank = rng.integers(np.where(nobody, 0, low), np.where(nobody, untaken, high))
        place = nth_missing(rank, users, self._indptr, self._place_keys, self.n_items)
        return np.asarray(self._by_popularity[place], dtype=_narrow(self.n_items))

    def _untaken_before(self, users: Ints, place: Ints) -> Ints:
        """How many items in places 0..place−1 the user did not take."""
        taken = np.searchsorted(self._taken, users.astype(np.int64) * self.n_items + place) - self._indptr[users]
        return np.asarray(place - taken)


class MarginSampler(BalancedSampler):
    """The negative item is, by a fair coin, more popular than the positive one by a margin, or not half as popular.

    Where the user left too few items on one side, it comes from the other.
    """

    margin: float = 0.0
    """How many more interactions."""
    pool: int = 40
    """How many untaken items a side has at least, unless the other has fewer too."""

    def draw_negative(self, rng: np.random.Generator, users: Ints, positive: Ints) -> Ints:
        """From above or below.  Returns (users,)."""
        untaken = self.n_items - np.diff(self._indptr)[users]
        own = self._popularity[positive]
        first = self._untaken_before(users, np.searchsorted(self._ascending, own + self.margin, side="right"))
        last = self._untaken_before(users, np.searchsorted(self._ascending, own / 2, side="left"))
        least = np.minimum(self.pool, np.maximum(untaken - first, last))  # the larger side always has enough
        enough_above, enough_below = untaken - first >= least, last >= least
        above = np.where(enough_above & enough_below, rng.random(len(users)) < 0.5, enough_above)
        return self._between(rng, users, np.where(above, first, 0), np.where(above, untaken, last))
