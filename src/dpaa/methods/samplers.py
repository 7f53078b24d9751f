"""Training pairs become triples (user, positive item, negative item), a whole epoch at once.

Random numbers are drawn by one generator, in the order of the triples; what is looked up before and after a draw,
nearly all of the time, several threads may do.  So their number changes no triple.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[Any]
Bounds = tuple[Ints | int, Ints]
BLOCK = 65_536
AHEAD = 4
"""Blocks for each thread that are under way."""


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

    bytes_per_pair: ClassVar[int] = 0
    """Memory that it takes more than this class does, for the preview."""
    threads = 1
    """That look up what is drawn."""

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
        indptr, n_items = self._indptr, self.n_items
        keys = gap_keys(indptr, self._items, n_items)  # made again each epoch: quickly, and not kept
        negative = np.empty(len(users), _narrow(n_items))

        def untaken(part: slice) -> Bounds:
            return 0, n_missing(users[part], indptr, n_items)

        def look_up(part: slice, rank: Ints) -> None:
            negative[part] = nth_missing(rank, users[part], indptr, keys, n_items)

        self._draw(rng, len(users), untaken, look_up)
        return negative

    def _by_user(self, rng: np.random.Generator) -> tuple[Ints, Ints]:
        users = np.empty(self.n_interactions, _narrow(self.n_users))
        for part in _blocks(len(users)):
            users[part] = rng.integers(0, self.n_users, part.stop - part.start)
        users = users[self._usable[users]]
        positive = np.empty(len(users), _narrow(self.n_items))
        ends = self._count_ends

        def pairs(part: slice) -> Bounds:
            """A pair of each user, in proportion to its count."""
            first, last = self._indptr[users[part]], self._indptr[users[part] + 1]
            return (first, last) if ends is None else (ends[first], ends[last])

        def look_up(part: slice, drawn: Ints) -> None:
            slots = drawn if ends is None else np.searchsorted(ends, drawn, side="right") - 1
            positive[part] = self._items[slots]

        self._draw(rng, len(users), pairs, look_up)
        return users, positive

    def _draw(
        self,
        rng: np.random.Generator,
        n: int,
        bounds: Callable[[slice], Bounds],
        look_up: Callable[[slice, Ints], None],
    ) -> None:
        """A number between the bounds for each of n, block by block; only the draws are one after the other."""
        if self.threads == 1 or n <= BLOCK:
            for part in _blocks(n):
                look_up(part, rng.integers(*bounds(part)))
            return
        with ThreadPoolExecutor(self.threads, thread_name_prefix="sample") as pool:
            begun: deque[tuple[slice, Future[Bounds]]] = deque()
            done: deque[Future[None]] = deque()

            def draw_next() -> None:
                part, found = begun.popleft()
                done.append(pool.submit(look_up, part, rng.integers(*found.result())))
                if len(done) > AHEAD * self.threads:
                    done.popleft().result()

            for part in _blocks(n):
                begun.append((part, pool.submit(bounds, part)))
                if len(begun) > AHEAD * self.threads:
                    draw_next()
            while begun:
                draw_next()
            for one in done:
                one.result()

    def _by_interaction(self, rng: np.random.Generator) -> tuple[Ints, Ints]:
        slots = np.arange(len(self._items), dtype=np.int32)
        if self._repeats is not None:
            slots = np.repeat(slots, self._repeats)
        slots = rng.permutation(slots[self._usable[self._users[slots]]])
        users, positive = self._users.astype(_narrow(self.n_users)), self._items.astype(_narrow(self.n_items))
        return users[slots], positive[slots]


class AnyItemSampler(TripleSampler):
    """The negative item is any item, also one that the user took."""

    bytes_per_pair = 8

    def draw_negative(self, rng: np.random.Generator, users: Ints, positive: Ints) -> Ints:
        """Uniformly among all items.  Returns (users,)."""
        del positive
        return rng.integers(0, self.n_items, len(users)).astype(_narrow(self.n_items))


class BalancedSampler(TripleSampler):
    """The negative item is, by a fair coin, strictly more or strictly less popular than the positive one.

    Where the user left no such item, any item not taken.  Items are numbered by popularity, so both sides are ranges,
    and a uniform draw from the untaken part of a range is one binary search.
    """

    bytes_per_pair = 100

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


def gap_keys(indptr: Ints, items: Ints, n_items: int) -> Ints:
    """`u · (n_items + 1) + a_j − j` for every pair, users ascending, then items.  Returns (pairs,).

    In 32 bits where they suffice: half the memory, and quicker to search.
    """
    of_user = np.arange(len(indptr) - 1, dtype=np.int64) * (n_items + 1) + indptr[:-1]
    largest = len(indptr) * (n_items + 1) + len(items)
    kind = np.int32 if largest < 2**31 else np.int64
    keys = np.repeat(of_user.astype(kind), np.diff(indptr))
    keys += items.astype(kind, copy=False)
    keys -= np.arange(len(items), dtype=kind)
    return keys


def draw_missing(rng: np.random.Generator, users: Ints, indptr: Ints, keys: Ints, n_items: int) -> NDArray[np.int64]:
    """One uniform draw from the items each user has not taken (at least one).  Returns (users,)."""
    return nth_missing(rng.integers(0, n_missing(users, indptr, n_items)), users, indptr, keys, n_items)


def n_missing(users: Ints, indptr: Ints, n_items: int) -> Ints:
    """How many items each user has not taken.  Returns (users,)."""
    return np.asarray(n_items - (indptr[users + 1] - indptr[users]))


def nth_missing(rank: Ints, users: Ints, indptr: Ints, keys: Ints, n_items: int) -> NDArray[np.int64]:
    """The item of this rank (from 0) among those the user has not taken.  Returns (users,)."""
    wanted = (users.astype(np.int64) * (n_items + 1) + rank).astype(keys.dtype, copy=False)  # else keys are copied
    before = np.searchsorted(keys, wanted, side="right") - indptr[users]
    return np.asarray(rank + before, dtype=np.int64)
