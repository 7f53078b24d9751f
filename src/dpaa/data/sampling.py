"""Training pairs become triples (user, liked item, other item), a whole epoch at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpaa.kernels.negatives import draw_missing, gap_keys

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[Any]


class TripleSampler:
    """Draws triples whose other item is never a training item of the user.

    `user-uniform`: as many draws as there are interactions; a user uniformly with replacement, then one of the user's
    items.  A draw that falls on a user without items, or on one who took every item, is skipped, so an epoch may be
    slightly shorter.  `interaction`: every interaction once, in random order (a pair that counts n times, n times).
    """

    def __init__(self, users: Ints, items: Ints, counts: Ints, n_users: int, n_items: int) -> None:
        self.n_users, self.n_items = n_users, n_items
        self.n_interactions = int(counts.sum())
        self._users, self._items = users, items
        self._indptr = np.concatenate([[0], np.cumsum(np.bincount(users, minlength=n_users))])
        self._keys = gap_keys(self._indptr, items, n_items)
        self._repeats = counts if self.n_interactions > len(items) else None
        self._count_ends = np.concatenate([[0], np.cumsum(counts)])
        taken = np.diff(self._indptr)
        self._usable = (taken > 0) & (taken < n_items)
        self.n_usable_users = int(self._usable.sum())
        self.users_without_items = int((taken == 0).sum())
        self.users_with_every_item = int((taken == n_items).sum())

    def epoch(self, rng: np.random.Generator, how: str) -> tuple[Ints, Ints, Ints]:
        """Users, liked and other items of one epoch, shuffled; each (triples,) int64."""
        users, liked = self._by_user(rng) if how == "user-uniform" else self._by_interaction(rng)
        return users, liked, draw_missing(rng, users, self._indptr, self._keys, self.n_items)

    def _by_user(self, rng: np.random.Generator) -> tuple[Ints, Ints]:
        users = rng.integers(0, self.n_users, self.n_interactions)
        users = users[self._usable[users]]
        first, last = self._count_ends[self._indptr[users]], self._count_ends[self._indptr[users + 1]]
        draw = rng.integers(first, last)
        slot = draw if self._repeats is None else np.searchsorted(self._count_ends, draw, side="right") - 1
        return users, self._items[slot]

    def _by_interaction(self, rng: np.random.Generator) -> tuple[Ints, Ints]:
        slots = (
            np.arange(len(self._items))
            if self._repeats is None
            else np.repeat(np.arange(len(self._items)), self._repeats)
        )
        slots = rng.permutation(slots[self._usable[self._users[slots]]])
        return self._users[slots], self._items[slots]
