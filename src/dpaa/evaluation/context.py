"""Ground truth of an evaluation (`GroundTruth`), and the inputs of metric formulas (`Context`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from dpaa.data.ids import Array, Floats, Mask
from dpaa.data.pairs import popular_items, popularity_deciles
from dpaa.evaluation import bias
from dpaa.evaluation.bias import mean_per_row

Pairs = tuple[Array, Array]
"""Two arrays of one length: rows or users, and items."""
NO_PAIRS: Pairs = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class GroundTruth:
    """Relevant items, counts and histories that lists are evaluated against.  Row r of the lists is user `users[r]`."""

    users: Array
    """(n,) user indices."""
    n_users: int
    counts: Array
    """(n_items,) training counts."""
    relevant: Array
    """Ascending keys `user · n_items + item` of the relevant pairs; all users are among `users`."""
    history: Pairs = NO_PAIRS
    """Training pairs (users, items) of all users."""
    masked: Pairs = NO_PAIRS
    """Pairs that could not be recommended."""
    candidates: Array | None = None
    """Indices of the items that may be recommended; None = all."""
    groups: Mapping[str, Mask] = field(default_factory=dict)
    """Further groups of items, `genre=Drama` → (n_items,); they may overlap."""

    @property
    def n_items(self) -> int:
        """All items, with or without training counts."""
        return len(self.counts)

    @cached_property
    def popular(self) -> Mask:
        """Whether each item is popular.  Returns (n_items,)."""
        return popular_items(self.counts)

    @cached_property
    def decile(self) -> Array:
        """Popularity decile of each item, −1 for those not in training.  Returns (n_items,)."""
        return popularity_deciles(self.counts)

    @cached_property
    def band(self) -> Array:
        """Tail (0), middle (1) or head (2) for each item.  Returns (n_items,)."""
        return bias.popularity_bands(self.counts)

    @cached_property
    def _row(self) -> Array:
        """Row of each user, −1 for users without one.  Returns (n_users,)."""
        row = np.full(self.n_users, -1, dtype=np.int64)
        row[self.users] = np.arange(len(self.users))
        return row

    @cached_property
    def relevant_pairs(self) -> Pairs:
        """Row and item of every relevant pair, by user and item."""
        user, item = np.divmod(self.relevant, self.n_items)
        return self._row[user], item

    def relevant_per_row(self, group: Mask | None = None) -> Array:
        """Count the relevant items of each row.

        Parameters
        ----------
        group : (n_items,) bool, the items to count; None = all

        Returns
        -------
        (rows,) counts
        """
        row, item = self.relevant_pairs
        return np.bincount(row if group is None else row[group[item]], minlength=len(self.users))

    def _of_rows(self, pairs: Pairs) -> Pairs:
        row = self._row[pairs[0]]
        return row[row >= 0], pairs[1][row >= 0]

    @cached_property
    def history_count(self) -> Floats:
        """Mean training count of each row's history."""
        row, item = self._of_rows(self.history)
        return mean_per_row(row, self.counts[item], len(self.users))

    @cached_property
    def history_bands(self) -> Floats:
        """Shares of tail, middle and head items in each row's history.  Returns (rows, 3)."""
        row, item = self._of_rows(self.history)
        return bias.band_shares(row, item, self.band, len(self.users))

    @cached_property
    def popular_share(self) -> Floats:
        """Share of popular items in each user's history, NaN without one.  Returns (n_users,)."""
        return mean_per_row(self.history[0], self.popular[self.history[1]], self.n_users)

    @cached_property
    def taste_of_users(self) -> Array:
        """Index into `TASTES` of each user, −1 without a history.  Returns (n_users,)."""
        return bias.tastes(self.popular_share)

    @property
    def taste(self) -> Array:
        """The same of each row; the edges between tastes come from all users with a history."""
        return self.taste_of_users[self.users]

    @cached_property
    def available(self) -> Array:
        """(niche, popular) pairs that could have been recommended."""
        allowed, masked = bias.among(self.n_items, self.candidates), self._of_rows(self.masked)[1]
        possible = len(self.users) * bias.by_group(np.flatnonzero(allowed), self.popular)
        return np.asarray(possible - bias.by_group(masked[allowed[masked]], self.popular))

    def among(self, lists: Array, keys: Array) -> Mask:
        """Test which slots of lists hold a pair of a given set.

        Parameters
        ----------
        lists : (rows, k) item indices, −1 where a list ends early
        keys : pairs as `user · n_items + item`, ascending

        Returns
        -------
        (rows, k) bool
        """
        if not len(keys):
            return np.zeros(lists.shape, dtype=bool)
        # Looked up by bisection: a table of users × items would not fit, and the keys are sorted anyway.
        wanted = self.users[:, None].astype(np.int64) * self.n_items + lists
        index = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.asarray((keys[index] == wanted) & (lists >= 0))

    def context(self, lists: Array) -> Context:
        """Prepare lists for the formulas of metrics.

        Parameters
        ----------
        lists : (rows, k) item indices, −1 where a list ends early

        Returns
        -------
        the input of the formulas
        """
        return Context(self, lists, self.among(lists, self.relevant), self.relevant_per_row(), slice(None))


@dataclass(frozen=True, eq=False)
class Context:
    """Lists, which of their slots are hits, and the truth: what a metric's formula takes."""

    truth: GroundTruth
    lists: Array
    """(users, k) item indices, −1 where a list ends early or the item is not known."""
    hits: Mask
    """(users, k): whether each slot holds a relevant item."""
    relevant: Array
    """(users,): how many relevant items each user has."""
    rows: Array | slice
    """Which of the truth's rows these users are."""
    one_of: tuple[Context, int] | None = None
    """The context of all groups of items, and the one that exposure is measured of."""

    def cut(self, k: int) -> Context:
        """Cut the lists to their first k slots."""
        return Context(self.truth, self.lists[:, :k], self.hits[:, :k], self.relevant, self.rows)

    def of_items(self, group: Mask | None) -> Context:
        """Only items of the group are relevant (None = all), and only users with such an item are left."""
        relevant = self.relevant if group is None else self.truth.relevant_per_row(group)
        hits, rows = self.hits if group is None else self.hits & group[self.lists], relevant > 0
        return Context(self.truth, self.lists[rows], hits[rows], relevant[rows], rows)

    def of_group(self, index: int) -> Context:
        """Only one of the truth's groups counts for the exposure of groups."""
        return replace(self, one_of=(self, index))

    @cached_property
    def exposure(self) -> Array:
        """How often each item is recommended.  Returns (n_items,)."""
        return bias.exposure(self.lists, self.truth.n_items)

    @property
    def candidate_exposure(self) -> Array:
        """How often each candidate is recommended.  Returns (candidates,)."""
        return self.exposure if self.truth.candidates is None else self.exposure[self.truth.candidates]

    @cached_property
    def group_shares(self) -> tuple[Floats, Floats, Floats]:
        """Shares of each of the truth's groups: of the exposure, of what users like, and of the candidates.

        A place at rank r is worth 1/log2(r + 1) of exposure.  Returns (groups,) three times.
        """
        if self.one_of is not None:
            every, index = self.one_of
            shown, merit, catalogue = (shares[[index]] for shares in every.group_shares)
            return shown, merit, catalogue
        worth = np.where(self.lists >= 0, 1.0 / np.log2(np.arange(self.lists.shape[1]) + 2.0), 0.0)
        of_items = np.bincount(np.maximum(self.lists, 0).ravel(), worth.ravel(), minlength=self.truth.n_items)
        liked = np.bincount(self.truth.relevant_pairs[1], minlength=self.truth.n_items)
        allowed = bias.among(self.truth.n_items, self.truth.candidates)
        masks = self.truth.groups.values()
        shown, merit, catalogue = (
            np.array([part[mask].sum() for mask in masks]) / max(part.sum(), 1e-12)
            for part in (of_items, liked, allowed)
        )
        return shown, merit, catalogue

    @cached_property
    def mean_count(self) -> Floats:
        """Mean training count of each list, NaN for an empty one.  Returns (users,)."""
        return bias.mean_of_lists(self.truth.counts.astype(np.float64), self.lists)
