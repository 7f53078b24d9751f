"""Training pairs become triples (user, positive item, negative item), a whole epoch at once.

Random numbers are drawn by one generator, in the order of the triples; what is looked up before and after a draw,
nearly all of the time, several threads may do.  So their number changes no triple.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[Any]
Bounds = tuple[Ints | int, Ints]
BLOCK = 65_536
"""Triples that are drawn at once; a different number would draw different ones."""


def _blocks(n: int) -> list[slice]:
    return [slice(first, min(first + BLOCK, n)) for first in range(0, n, BLOCK)]


def _narrow(n: int) -> type[np.unsignedinteger[Any] | np.signedinteger[Any]]:
    """Type of the numbers 0..n: an epoch's triples are the largest part of small trainings."""
    return np.uint16 if n < 2**16 else np.int32


class TripleSampler:
    """Draws triples whose negative item is never a training item of the user.

    `user-uniform`: as many draws as there are interactions; a user uniformly with replacement, then one of the user's
    items.  A draw of a user without items, or of one who took every item, is skipped, so an epoch may be slightly
    shorter.  `interaction`: every interaction once, in random order (a pair that counts n times, n times).

    Parameters
    ----------
    users, items : training pairs, sorted by user, then item
    counts : how often each pair occurred
    n_users, n_items : how many there are, those without pairs included
    """

    threads = 1

    def __init__(self, users: Ints, items: Ints, counts: Ints, n_users: int, n_items: int) -> None:
        self.n_users, self.n_items = n_users, n_items
        self.n_interactions = int(counts.sum())
        self._users, self._items = users, items
        self._indptr = np.concatenate([[0], np.cumsum(np.bincount(users, minlength=n_users))])
        self._repeats = counts if self.n_interactions > len(items) else None
        self._count_ends = None if self._repeats is None else np.concatenate([[0], np.cumsum(counts)])
        taken = np.diff(self._indptr)
        self._usable = (taken > 0) & (taken < n_items)  # users with an item to draw on either side

    def epoch(self, rng: np.random.Generator, how: str) -> tuple[Ints, Ints, Ints]:
        """Draw the triples of one epoch.

        Parameters
        ----------
        rng : generator of all random numbers
        how : `user-uniform` or `interaction`

        Returns
        -------
        users, positive and negative items, shuffled; each (triples,) uint16 or int32
        """
        users, positive = self._by_user(rng) if how == "user-uniform" else self._by_interaction(rng)
        return users, positive, self.draw_negative(rng, users, positive)

    def draw_negative(self, rng: np.random.Generator, users: Ints, positive: Ints) -> Ints:
        """Draw items uniformly among those that the user did not take.  (users,)."""
        indptr, n_items = self._indptr, self.n_items
        keys = gap_keys(indptr, self._items, n_items)  # computed every epoch: quick, and not kept
        negative = np.empty(len(users), _narrow(n_items))

        def untaken(part: slice) -> Bounds:
            return 0, np.asarray(n_items - (indptr[users[part] + 1] - indptr[users[part]]))

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
            first, last = self._indptr[users[part]], self._indptr[users[part] + 1]
            return (first, last) if ends is None else (ends[first], ends[last])  # in proportion to the counts

        def look_up(part: slice, drawn: Ints) -> None:
            positive[part] = self._items[drawn if ends is None else np.searchsorted(ends, drawn, side="right") - 1]

        self._draw(rng, len(users), pairs, look_up)
        return users, positive

    def _draw(
        self,
        rng: np.random.Generator,
        n: int,
        bounds: Callable[[slice], Bounds],
        look_up: Callable[[slice, Ints], None],
    ) -> None:
        """Draw a number between the bounds for each of n, block by block; the draws alone are sequential."""
        blocks, step = _blocks(n), 4 * self.threads  # few blocks at once, so that memory stays small
        with ThreadPoolExecutor(self.threads, thread_name_prefix="sample") as pool:
            for some in (blocks[first : first + step] for first in range(0, len(blocks), step)):
                # In the order of the blocks, whichever thread was first: the number of threads changes
                # no draw.
                drawn = [rng.integers(*limits) for limits in pool.map(bounds, some)]
                list(pool.map(look_up, some, drawn))

    def _by_interaction(self, rng: np.random.Generator) -> tuple[Ints, Ints]:
        slots = np.arange(len(self._items), dtype=np.int32)
        if self._repeats is not None:
            slots = np.repeat(slots, self._repeats)
        slots = rng.permutation(slots[self._usable[self._users[slots]]])
        users, positive = self._users.astype(_narrow(self.n_users)), self._items.astype(_narrow(self.n_items))
        return users[slots], positive[slots]


class AnyItemSampler(TripleSampler):
    """The negative item is any item, including the user's own."""

    def draw_negative(self, rng: np.random.Generator, users: Ints, positive: Ints) -> Ints:
        """Draw items uniformly among all.  (users,)."""
        return rng.integers(0, self.n_items, len(users)).astype(_narrow(self.n_items))


class BalancedSampler(TripleSampler):
    """The negative item is strictly more or strictly less popular than the positive one, with probability ½ each.

    Where the user left no such item, any item not taken.  Items are numbered by popularity, so both sides are ranges,
    and a uniform draw from the untaken part of a range is one binary search.
    """

    def __init__(self, users: Ints, items: Ints, counts: Ints, n_users: int, n_items: int) -> None:
        super().__init__(users, items, counts, n_users, n_items)
        self._popularity = np.bincount(items, counts, minlength=n_items)
        self._by_popularity = np.argsort(self._popularity, kind="stable")
        self._ascending = self._popularity[self._by_popularity]
        rank = np.empty(n_items, dtype=np.int64)
        rank[self._by_popularity] = np.arange(n_items)
        self._taken = np.sort(users.astype(np.int64) * n_items + rank[items])  # users ascending, then ranks
        self._rank_keys = gap_keys(self._indptr, self._taken % n_items, n_items)

    def draw_negative(self, rng: np.random.Generator, users: Ints, positive: Ints) -> Ints:
        """Draw items by a fair coin from above or below the positive item's popularity.  (users,)."""
        own, above = self._popularity[positive], rng.random(len(users)) < 0.5
        first, last = self._untaken_below(users, own, "right"), self._untaken_below(users, own)
        return self._between(rng, users, above, first, last)

    def _between(self, rng: np.random.Generator, users: Ints, above: Ints, first: Ints, last: Ints) -> Ints:
        """An untaken item, of rank ≥ first where `above`, else < last; any where there is none.  (users,)."""
        untaken = self.n_items - np.diff(self._indptr)[users]
        low, high = np.where(above, first, 0), np.where(above, untaken, last)
        nobody = low == high  # the range of that side is empty for these users
        drawn = rng.integers(np.where(nobody, 0, low), np.where(nobody, untaken, high))
        rank = nth_missing(drawn, users, self._indptr, self._rank_keys, self.n_items)
        return np.asarray(self._by_popularity[rank], dtype=_narrow(self.n_items))

    def _untaken_below(self, users: Ints, popularity: Ints, side: Literal["left", "right"] = "left") -> Ints:
        """How many items less popular than this (from the right: at most as popular) the user did not take.  (users,).

        Those after the ones at most as popular are above.
        """
        rank = np.searchsorted(self._ascending, popularity, side=side)
        taken = np.searchsorted(self._taken, users.astype(np.int64) * self.n_items + rank) - self._indptr[users]
        return np.asarray(rank - taken)


class MarginSampler(BalancedSampler):
    """The negative item is more popular than the positive one by a margin, or at most half as popular, each with ½.

    Where the user left fewer than `pool` items on one side, it comes from the other.
    """

    margin: float = 0.0
    pool: int = 40

    def draw_negative(self, rng: np.random.Generator, users: Ints, positive: Ints) -> Ints:
        """Draw items from above or below the margin.  (users,)."""
        untaken = self.n_items - np.diff(self._indptr)[users]
        own = self._popularity[positive]
        first = self._untaken_below(users, own + self.margin, "right")
        last = self._untaken_below(users, own / 2)
        least = np.minimum(self.pool, np.maximum(untaken - first, last))  # the larger side always has enough
        enough_above, enough_below = untaken - first >= least, last >= least
        above = np.where(enough_above & enough_below, rng.random(len(users)) < 0.5, enough_above)
        return self._between(rng, users, above, first, last)


def gap_keys(indptr: Ints, items: Ints, n_items: int) -> Ints:
    """`u · (n_items + 1) + a_j − j` for every pair, users ascending, then items.  (pairs,).

    In 32 bits where they suffice: half the memory, and quicker to search.
    """
    of_user = np.arange(len(indptr) - 1, dtype=np.int64) * (n_items + 1) + indptr[:-1]
    kind = np.int32 if len(indptr) * (n_items + 1) + len(items) < 2**31 else np.int64
    keys = np.repeat(of_user.astype(kind), np.diff(indptr))
    keys += items.astype(kind, copy=False)
    keys -= np.arange(len(items), dtype=kind)
    return keys


def nth_missing(rank: Ints, users: Ints, indptr: Ints, keys: Ints, n_items: int) -> NDArray[np.int64]:
    """The item of this rank (from 0) among those the user has not taken.  (users,)."""
    wanted = (users.astype(np.int64) * (n_items + 1) + rank).astype(keys.dtype, copy=False)  # else keys are copied
    before = np.searchsorted(keys, wanted, side="right") - indptr[users]
    return np.asarray(rank + before, dtype=np.int64)
