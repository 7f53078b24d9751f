"""The whole suite of metrics of some lists: accuracy by item group and by taste, bias, exposure.

`measure` takes plain arrays and needs no model, dataset or file of ours; the evaluator uses the same `Suite`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaa.data.popularity import popular_items, popularity_deciles
from dpaa.errors import InputError
from dpaa.evaluation import bias
from dpaa.evaluation.metrics import ACCURACY
from dpaa.evaluation.tastes import TASTES, mean_per_row, tastes

Array = NDArray[Any]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Pairs = tuple[Array, Array]
"""Two arrays of one length: rows or users, and items."""


@dataclass(frozen=True, eq=False)
class Measured:
    """What was found."""

    metrics: dict[str, float]
    """`name@k`, with `/popular`, `/niche` (item groups) and `/niche-tastes` … (user groups) behind it; NaN where there
    is nothing to measure."""
    per_row: dict[str, Array]
    """At the largest k, one value per list: NaN where it has none; `taste` in words, None without a history."""
    exposure: dict[str, list[float]]
    """k → share of the recommendations on each popularity decile, rarest first; then on items not in training."""


@dataclass(frozen=True, eq=False)
class Suite:
    """What lists are measured against, made ready once.  Row r of the lists belongs to user `users[r]`."""

    users: Array
    """(n,) user indices."""
    n_users: int
    counts: Array
    """(n_items,) training counts."""
    relevant: Array
    """Ascending keys `user · n_items + item` of the relevant pairs; all users are among `users`."""
    history: Pairs | None
    """Training pairs (users, items) of all users, or None where they are not known."""
    masked: Pairs | None
    """Pairs that could not be recommended."""
    candidates: Array | None
    """Indices of the items that may be recommended; None = all."""

    @property
    def n_items(self) -> int:
        """All items, with or without training counts."""
        return len(self.counts)

    # ------------------------------------------------------------------ made when first asked for

    @cached_property
    def popular(self) -> Mask:
        """Whether each item is popular.  Returns (n_items,)."""
        return popular_items(self.counts)

    @cached_property
    def _row(self) -> Array:
        """User → row, −1 for the others."""
        row = np.full(self.n_users, -1, dtype=np.int64)
        row[self.users] = np.arange(len(self.users))
        return row

    @cached_property
    def _relevant_row(self) -> Array:
        return np.asarray(self._row[self.relevant // self.n_items])

    @cached_property
    def _relevant_item(self) -> Array:
        return np.asarray(self.relevant % self.n_items)

    @cached_property
    def _decile(self) -> Array:
        return popularity_deciles(self.counts)

    @cached_property
    def _band(self) -> Array:
        return bias.popularity_bands(self.counts)

    def _of_rows(self, pairs: Pairs) -> Pairs:
        row = self._row[pairs[0]]
        return row[row >= 0], pairs[1][row >= 0]

    @cached_property
    def _history_count(self) -> Floats | None:
        """Mean training count of each row's history."""
        if self.history is None:
            return None
        row, item = self._of_rows(self.history)
        return mean_per_row(row, self.counts[item], len(self.users))

    @cached_property
    def _history_bands(self) -> Floats | None:
        if self.history is None:
            return None
        row, item = self._of_rows(self.history)
        return bias.band_shares(row, item, self._band, len(self.users))

    @cached_property
    def taste(self) -> Array | None:
        """Index into `TASTES` of each row, −1 without a history; the edges come from all users with a history."""
        if self.history is None:
            return None
        share = mean_per_row(self.history[0], self.popular[self.history[1]], self.n_users)
        return tastes(share)[self.users]

    @cached_property
    def _available(self) -> Array | None:
        if self.masked is None:
            return None
        return bias.available_pairs(self.popular, len(self.users), self.candidates, self._of_rows(self.masked)[1])

    # ------------------------------------------------------------------ accuracy

    def hits(self, lists: Array) -> Mask:
        """Whether each place holds a relevant item.  Returns (rows, k)."""
        return self.among(lists, self.relevant)

    def among(self, lists: Array, keys: Array) -> Mask:
        """Whether each place's pair (user, item) is among the keys `user · n_items + item`, ascending."""
        if not len(keys):
            return np.zeros(lists.shape, dtype=bool)
        wanted = self.users[:, None].astype(np.int64) * self.n_items + lists
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.asarray((keys[place] == wanted) & (lists >= 0))

    def relevant_per_row(self, group: Mask | None = None) -> Array:
        """How many relevant items (of a group) each row has.  Returns (rows,)."""
        row = self._relevant_row if group is None else self._relevant_row[group[self._relevant_item]]
        return np.bincount(row, minlength=len(self.users))

    @property
    def relevant_pairs(self) -> Pairs:
        """Row and item of every relevant pair, by user and item."""
        return self._relevant_row, self._relevant_item

    def _accuracy(self, lists: Array, hits: Mask, k: int) -> Iterator[tuple[str, Floats]]:
        """Name and values of each row, NaN for a row without a relevant item in the group."""
        for suffix, group in (("", None), ("/popular", self.popular), ("/niche", ~self.popular)):
            relevant = self.relevant_per_row(group)
            counted = relevant > 0
            group_hits = hits[:, :k] if group is None else hits[:, :k] & group[lists[:, :k]]
            for name, formula in ACCURACY.items():
                values = np.full(len(lists), np.nan)
                values[counted] = formula(group_hits[counted], relevant[counted])
                yield f"{name}@{k}{suffix}", values

    # ------------------------------------------------------------------ bias

    def _bias_of_rows(self, lists: Array, k: int) -> Iterator[tuple[str, Floats]]:
        """Metrics that each row has for itself."""
        mean_count = bias.mean_of_lists(self.counts.astype(np.float64), lists)
        yield f"arp@{k}", mean_count
        yield f"aplt@{k}", bias.mean_of_lists((~self.popular).astype(np.float64), lists)
        if self._history_count is not None and self._history_bands is not None:
            yield f"popularity_lift@{k}", bias.popularity_lift(mean_count, self._history_count)
            row, place = np.nonzero(lists >= 0)
            of_lists = bias.band_shares(row, lists[row, place], self._band, len(lists))
            yield f"upd@{k}", bias.upd(of_lists, self._history_bands)

    def _bias_of_all(self, lists: Array, hits: Mask, k: int) -> dict[str, float]:
        """Metrics of all lists together."""
        n_candidates = self.n_items if self.candidates is None else len(self.candidates)
        found = {
            f"aclt@{k}": bias.aclt(lists, self.popular),
            f"head_share@{k}": bias.head_share(lists, self.counts),
            f"coverage@{k}": bias.coverage(lists, n_candidates, self.candidates),
            f"gini@{k}": bias.gini(lists, self.n_items, self.candidates),
            f"entropy@{k}": bias.entropy(lists, self.n_items),
            f"pop_reo@{k}": bias.pop_reo(lists, hits, self._relevant_item, self.popular),
        }
        if self._available is not None:
            found[f"pop_rsp@{k}"] = bias.pop_rsp(lists, self.popular, self._available)
        return found

    # ------------------------------------------------------------------ all of it

    def measure(self, lists: Array, cuts: Sequence[int]) -> Measured:
        """All metrics of the lists, (rows, at least the largest k)."""
        hits = self.hits(lists)
        metrics: dict[str, float] = {}
        per_row: dict[str, Array] = {}
        exposure = {}
        for k in cuts:
            cut, cut_hits = lists[:, :k], hits[:, :k]
            of_rows = dict(self._accuracy(lists, hits, k)) | dict(self._bias_of_rows(cut, k))
            metrics |= {name: _mean(values) for name, values in of_rows.items()}
            metrics |= self._bias_of_all(cut, cut_hits, k)
            metrics |= self._by_taste(of_rows, k)
            exposure[str(k)] = [float(share) for share in bias.decile_shares(cut, self._decile)]
            if k == cuts[-1]:
                per_row = dict(of_rows)
        if self.taste is not None:
            per_row["taste"] = np.array([*TASTES, None], dtype=object)[self.taste]
        return Measured(metrics, per_row, exposure)

    def _by_taste(self, of_rows: dict[str, Floats], k: int) -> dict[str, float]:
        if self.taste is None:
            return {}
        names = [f"{name}@{k}" for name in (*ACCURACY, "arp", "popularity_lift", "upd")]
        groups = [(f"/{taste}-tastes", self.taste == place) for place, taste in enumerate(TASTES)]
        return {name + suffix: _mean(of_rows[name][group]) for suffix, group in groups for name in names}


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
    suite = Suite(
        users=np.arange(len(table)),
        n_users=len(table),
        counts=per_item,
        relevant=np.unique(wanted[0] * len(per_item) + wanted[1]),
        history=known,
        masked=known,
        candidates=chosen,
    )
    return suite.measure(table, cuts)


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


def _mean(values: Floats) -> float:
    there = ~np.isnan(values)
    return float(values[there].mean()) if there.any() else float("nan")
