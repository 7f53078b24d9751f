"""What lists are measured against (`GroundTruth`), and both as the formulas of metrics see them (`Context`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaa.data.popularity import popular_items, popularity_deciles
from dpaa.errors import InputError
from dpaa.evaluation import bias
from dpaa.evaluation.concentration import TASTES, mean_per_row, tastes
from dpaa.evaluation.metrics import METRICS, OF_COLUMNS, of_kind

Array = NDArray[Any]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Pairs = tuple[Array, Array]
"""Two arrays of one length: rows or users, and items."""


@dataclass(frozen=True, eq=False)
class GroundTruth:
    """Made ready once, for any lists of these users.  Row r of the lists belongs to user `users[r]`."""

    users: Array
    """(n,) user indices."""
    n_users: int
    counts: Array
    """(n_items,) training counts."""
    relevant: Array
    """Ascending keys `user · n_items + item` of the relevant pairs; all users are among `users`."""
    history: Pairs | None = None
    """Training pairs (users, items) of all users, or None where they are not known."""
    masked: Pairs | None = None
    """Pairs that could not be recommended."""
    candidates: Array | None = None
    """Indices of the items that may be recommended; None = all."""
    groups: Mapping[str, Mask] = field(default_factory=dict)
    """Groups of items that somebody asked for, `genre=Drama` → (n_items,); they may overlap."""

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
        """Tail, middle or head (`bias.BANDS`) for each item.  Returns (n_items,)."""
        return bias.popularity_bands(self.counts)

    @cached_property
    def _row(self) -> Array:
        """User → row, −1 for the others."""
        row = np.full(self.n_users, -1, dtype=np.int64)
        row[self.users] = np.arange(len(self.users))
        return row

    @cached_property
    def relevant_pairs(self) -> Pairs:
        """Row and item of every relevant pair, by user and item."""
        user, item = np.divmod(self.relevant, self.n_items)
        return self._row[user], item

    def relevant_per_row(self, group: Mask | None = None) -> Array:
        """How many relevant items (of a group) each row has.  Returns (rows,)."""
        row, item = self.relevant_pairs
        return np.bincount(row if group is None else row[group[item]], minlength=len(self.users))

    def _of_rows(self, pairs: Pairs) -> Pairs:
        row = self._row[pairs[0]]
        return row[row >= 0], pairs[1][row >= 0]

    @cached_property
    def history_count(self) -> Floats | None:
        """Mean training count of each row's history."""
        if self.history is None:
            return None
        row, item = self._of_rows(self.history)
        return mean_per_row(row, self.counts[item], len(self.users))

    @cached_property
    def history_bands(self) -> Floats | None:
        """Shares of tail, middle and head items in each row's history.  Returns (rows, 3)."""
        if self.history is None:
            return None
        row, item = self._of_rows(self.history)
        return bias.band_shares(row, item, self.band, len(self.users))

    @cached_property
    def taste(self) -> Array | None:
        """Index into `TASTES` of each row, −1 without a history; the edges come from all users with a history."""
        if self.history is None:
            return None
        share = mean_per_row(self.history[0], self.popular[self.history[1]], self.n_users)
        return tastes(share)[self.users]

    @cached_property
    def available(self) -> Array | None:
        """(niche, popular) pairs that could have been recommended."""
        if self.masked is None:
            return None
        return bias.available_pairs(self.popular, len(self.users), self.candidates, self._of_rows(self.masked)[1])

    def among(self, lists: Array, keys: Array) -> Mask:
        """Whether each place's pair (user, item) is among the keys `user · n_items + item`, ascending."""
        if not len(keys):
            return np.zeros(lists.shape, dtype=bool)
        wanted = self.users[:, None].astype(np.int64) * self.n_items + lists
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.asarray((keys[place] == wanted) & (lists >= 0))

    def context(self, lists: Array) -> Context:
        """These lists, (rows, k), for the formulas."""
        return Context(self, lists, self.among(lists, self.relevant), self.relevant_per_row(), slice(None))


@dataclass(frozen=True, eq=False)
class Context:
    """Lists, which of their places are hits, and the truth: what a metric's formula takes."""

    truth: GroundTruth
    lists: Array
    """(users, k) item indices, −1 where a list ends early or the item is not known."""
    hits: Mask
    """(users, k): whether each place holds a relevant item."""
    relevant: Array
    """(users,): how many relevant items each user has."""
    rows: Array | slice
    """Which of the truth's rows these users are."""

    def cut(self, k: int) -> Context:
        """The first k places."""
        return Context(self.truth, self.lists[:, :k], self.hits[:, :k], self.relevant, self.rows)

    def of_items(self, group: Mask | None) -> Context:
        """Only items of the group are relevant (None = all), and only users with such an item are left."""
        relevant = self.relevant if group is None else self.truth.relevant_per_row(group)
        hits, rows = self.hits if group is None else self.hits & group[self.lists], relevant > 0
        return Context(self.truth, self.lists[rows], hits[rows], relevant[rows], rows)

    @cached_property
    def exposure(self) -> Array:
        """How often each item is recommended.  Returns (n_items,)."""
        return bias.exposure(self.lists, self.truth.n_items)

    @cached_property
    def mean_count(self) -> Floats:
        """Mean training count of each list, NaN for an empty one.  Returns (users,)."""
        return bias.mean_of_lists(self.truth.counts.astype(np.float64), self.lists)


@dataclass(frozen=True, eq=False)
class Measured:
    """What was found."""

    metrics: dict[str, float]
    """`name@k`, with `/popular`, `/niche`, `/genre=Drama` (item groups) and `/niche-tastes`, `/cold-users` … (user
    groups) behind it; NaN where there is nothing to measure."""
    per_row: dict[str, Array]
    """At the largest k, one value per list: NaN where it has none; `taste` in words, None without a history."""
    exposure: dict[str, list[float]]
    """k → share of the recommendations on each popularity decile, rarest first; then on items not in training."""


def measure_all(truth: GroundTruth, lists: Array, cuts: Sequence[int]) -> Measured:
    """All metrics of the lists, (rows, at least the largest k)."""
    whole = truth.context(lists)
    metrics: dict[str, float] = {}
    per_row: dict[str, Array] = {}
    exposure = {}
    for k in cuts:
        at = whole.cut(k)
        per_row = dict(_accuracy(at, k))
        of_all: dict[str, Any] = {}
        for metric in METRICS.values():
            found = None if metric.kind == "accuracy" else metric.formula(at)
            if found is not None:
                (per_row if metric.per_user else of_all)[f"{metric.name}@{k}"] = found
        metrics |= {name: bias.mean_of_known(values) for name, values in per_row.items()} | of_all
        metrics |= _by_users(truth, per_row, k)
        exposure[str(k)] = bias.decile_shares(at.lists, truth.decile).tolist()
    if truth.taste is not None:
        per_row["taste"] = np.array([*TASTES, None], dtype=object)[truth.taste]
    return Measured(metrics, per_row, exposure)


def _accuracy(at: Context, k: int) -> Iterator[tuple[str, Floats]]:
    """Name and values of each row, NaN for a row without a relevant item in the group."""
    popular = at.truth.popular
    of_columns = ((f"/{name}", group) for name, group in at.truth.groups.items())
    for suffix, group in (("", None), ("/popular", popular), ("/niche", ~popular), *of_columns):
        part = at.of_items(group)
        for metric in of_kind("accuracy"):
            if "=" in suffix and metric.name not in OF_COLUMNS:
                continue
            values = np.full(len(at.lists), np.nan)
            values[part.rows] = metric.formula(part)
            yield f"{metric.name}@{k}{suffix}", values


def _by_users(truth: GroundTruth, per_row: dict[str, Array], k: int) -> dict[str, float]:
    """Means over users by taste, and over warm and cold users where there are both."""
    if truth.taste is None:
        return {}
    names = [f"{metric.name}@{k}" for metric in METRICS.values() if metric.per_user and metric.by_taste]
    groups = [(f"/{taste}-tastes", truth.taste == place) for place, taste in enumerate(TASTES)]
    found = {name + suffix: bias.mean_of_known(per_row[name][group]) for suffix, group in groups for name in names}
    if (cold := truth.taste < 0).any():
        names = [f"{metric.name}@{k}" for metric in of_kind("accuracy")]
        groups = [("/warm-users", ~cold), ("/cold-users", cold)]
        found |= {name + suffix: bias.mean_of_known(per_row[name][group]) for suffix, group in groups for name in names}
    return found


def measure(
    lists: Any,
    relevant: Any,
    counts: Any,
    *,
    k: int | Sequence[int] | None = None,
    history: Any = None,
    candidates: Any = None,
) -> Measured:
    """All metrics of recommendation lists from anywhere.

    `lists` is (n, k) item indices, best first, −1 where a list ends early; `relevant` are the items each list should
    have held: n collections of item indices, or two arrays (row, item); `counts` is (n_items,) how often each item
    occurs in training.  `history`, in either form, is what each row's user had in training: with it come
    popularity_lift, upd, pop_rsp and the tastes.  `candidates` are the items that may be recommended (all unless
    given), `k` the cuts (the whole width unless given).

        >>> found = measure([[2, 0], [0, -1]], relevant=[{2}, {1}], counts=[5, 3, 1])
        >>> found.metrics["recall@2"], found.metrics["arp@2"]
        (0.5, 4.0)
    """
    per_item = np.asarray(counts)
    numbers = per_item.ndim == 1 and len(per_item) > 0 and per_item.dtype.kind in "iuf"
    if not numbers or not np.all(np.isfinite(per_item) & (per_item >= 0)):
        raise InputError("counts must be one number from 0 for each item")
    table = _checked_lists(lists, len(per_item))
    cuts = tuple(sorted({table.shape[1]} if k is None else {k} if isinstance(k, int) else set(k)))
    if not cuts or cuts[0] < 1:
        raise InputError(f"k must be at least 1, got {k!r}")
    if cuts[-1] > table.shape[1]:
        filler = np.full((len(table), cuts[-1] - table.shape[1]), -1)
        table = np.concatenate([table, filler], axis=1)
    wanted = _pairs(relevant, "relevant", len(table), len(per_item))
    known = None if history is None else _pairs(history, "history", len(table), len(per_item))
    chosen = None if candidates is None else np.unique(_indices(candidates, "candidates", len(per_item)))
    truth = GroundTruth(
        users=np.arange(len(table)),
        n_users=len(table),
        counts=per_item,
        relevant=np.unique(wanted[0] * len(per_item) + wanted[1]),
        history=known,
        masked=known,
        candidates=chosen,
    )
    return measure_all(truth, table, cuts)


def _checked_lists(lists: Any, n_items: int) -> Array:
    try:
        table = np.asarray(lists)
    except ValueError:
        table = np.empty(0)
    if table.ndim != 2 or not table.size or table.dtype.kind not in "iu":
        raise InputError("lists must be a table of item indices, one row per list; fill rows that end early with -1")
    if table.min() < -1 or table.max() >= n_items:
        raise InputError(f"lists holds an index outside -1 to {n_items - 1}; counts has {n_items:,} items")
    in_order = np.sort(table, axis=1)
    twice = (in_order[:, 1:] == in_order[:, :-1]) & (in_order[:, 1:] >= 0)
    if twice.any():
        row = int(np.argmax(twice.any(axis=1)))
        raise InputError(f"list {row} holds item {in_order[row, 1:][twice[row]][0]} twice; each item may occur once")
    return table


def _pairs(given: Any, name: str, n_rows: int, n_items: int) -> Pairs:
    """(rows, items), each pair once, from two arrays or from one collection per row."""
    if isinstance(given, tuple) and len(given) == 2 and all(isinstance(part, np.ndarray) for part in given):
        rows, items = _indices(given[0], name, n_rows), _indices(given[1], name, n_items)
        if len(rows) != len(items):
            raise InputError(f"{name} has {len(rows):,} rows and {len(items):,} items; give one item for each row")
    else:
        if len(given) != n_rows:
            raise InputError(f"{name} has {len(given):,} collections for {n_rows:,} lists; give one for each list")
        rows = np.repeat(np.arange(n_rows), [len(items) for items in given])
        items = _indices([item for items in given for item in items], name, n_items)
    keys = np.unique(rows * n_items + items)
    return keys // n_items, keys % n_items


def _indices(given: Any, name: str, n: int) -> Array:
    values = np.asarray(given)
    if not values.size:
        return np.empty(0, dtype=np.int64)
    if values.ndim != 1 or values.dtype.kind not in "iu" or values.min() < 0 or values.max() >= n:
        raise InputError(f"{name} must hold whole numbers from 0 to {n - 1}")
    return values.astype(np.int64)
