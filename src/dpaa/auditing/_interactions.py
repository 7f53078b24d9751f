"""What an audit looks at: who took what, and when, from a prepared dataset, a log file or a dataframe."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpaa.data.attributes import attributes_of
from dpaa.data.columns import Column
from dpaa.data.dataset import Dataset, read_dataset
from dpaa.data.ids import distinct_ids, encode
from dpaa.data.inputs import BY_ENDING, OURS, TextForm, ending_of, open_log, open_table
from dpaa.data.log import ColumnNames, PositiveRule, Reading, read_log
from dpaa.data.popularity import popular_items
from dpaa.data.tables import as_table
from dpaa.errors import InputError
from dpaa.evaluation.concentration import mean_per_row, tastes

Ints = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Interactions:
    """Distinct (user, item) pairs as indices, in any order."""

    source: str
    """Where they come from, in words."""
    user_ids: pl.Series
    """(n_users,) ascending; with or without a pair."""
    item_ids: pl.Series
    """(n_items,)"""
    user: Ints
    """(n,)"""
    item: Ints
    """(n,)"""
    count: Ints | None
    """(n,): how often each pair occurred; None = once each."""
    times: pl.DataFrame | None
    """`item, time, count` of the pairs with a known time (the first, if a pair is repeated); time: number or UTC."""
    candidates: Ints | None = None
    """Indices of the items that may be recommended; None = all."""
    notes: tuple[str, ...] = ()
    titles: pl.Series | None = None
    """(n_items,) names of the items for people, where they are known."""
    invalid: pl.DataFrame | None = None
    """Faulty rows that were left out: `source, row, fault, content`."""

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Interactions of each item.  Returns (n_items,)."""
        return np.bincount(self.item, self.count, minlength=len(self.item_ids)).astype(np.int64)

    @cached_property
    def history_lengths(self) -> NDArray[np.int64]:
        """Distinct items of each user.  Returns (n_users,)."""
        return np.bincount(self.user, minlength=len(self.user_ids))

    @cached_property
    def popular(self) -> NDArray[np.bool_]:
        """The fewest items that have 80% of the interactions.  Returns (n_items,)."""
        return popular_items(self.counts)

    @cached_property
    def popular_share(self) -> NDArray[np.float64]:
        """Share of popular items in each user's history, NaN without one.  Returns (n_users,)."""
        return mean_per_row(self.user, self.popular[self.item], len(self.user_ids))

    @cached_property
    def taste(self) -> NDArray[np.int64]:
        """The taste of each user, an index into `TASTES`; −1 without a history.  Returns (n_users,)."""
        return tastes(self.popular_share)


def interactions(
    data: Any,
    *,
    fmt: str | None = None,
    names: ColumnNames | None = None,
    positive: str | None = None,
    keep_duplicates: bool = False,
    form: TextForm | None = None,
    drop_invalid: bool = False,
    items: Any = None,
) -> Interactions:
    """Read a prepared dataset (or its folder), a log (files, folders, patterns, `-`, URLs) or a dataframe.

    Of a dataset, the training split: validation and test are not looked at.  Of a log, the positive rows, each pair
    once, as `dpaa data log` reads them.  Parameters as in `dpaa.audit`.
    """
    paths = [data] if isinstance(data, str | Path) else data if isinstance(data, list | tuple) else []
    names = names or ColumnNames()
    if isinstance(data, Dataset) or (len(paths) == 1 and Path(paths[0]).is_dir() and not _holds_logs(Path(paths[0]))):
        plain = (names, form or TextForm()) == (ColumnNames(), TextForm())
        if fmt or positive or keep_duplicates or drop_invalid or items is not None or not plain:
            raise InputError(
                f"{paths[0] if paths else data} is prepared already; leave out options on how a log is read"
            )
        return _of_dataset(data if isinstance(data, Dataset) else read_dataset(paths[0]))
    table = open_log(paths, fmt, form) if paths else as_table(data, "the frame")
    rule = None if positive is None else PositiveRule.parse(positive)
    log = read_log(table, names, rule, Reading(drop_invalid), once=True, keep_duplicates=keep_duplicates)
    frame, notes, titles = log.frame, tuple(log.notes), None
    user_ids, item_ids = (distinct_ids([frame[column]]) for column in (Column.USER, Column.ITEM))
    if items is not None:
        named = open_table(items) if isinstance(items, str | Path) else as_table(items, "the items frame")
        attributes, more = attributes_of(named, item_ids, names.item)
        titles, notes = attributes.titles, (*notes, *more)
    user, item = encode(frame[Column.USER], user_ids), encode(frame[Column.ITEM], item_ids)
    count = frame[Column.COUNT].to_numpy() if Column.COUNT in frame.columns else None
    source, times = f"log {table.name}", _times(frame, item)
    return Interactions(source, user_ids, item_ids, user, item, count, times, None, notes, titles, log.invalid)


def _of_dataset(data: Dataset) -> Interactions:
    frame = data.frame("train")
    times = _times(frame, encode(frame[Column.ITEM], data.item_ids))
    ids, train = (data.user_ids, data.item_ids), data.train
    source = f"the training split of dataset {data.name}"
    return Interactions(source, *ids, train.user, train.item, train.count, times, data.candidates, titles=data.titles)


def _times(frame: pl.DataFrame, item: Ints) -> pl.DataFrame | None:
    """`item, time, count` of the pairs that have a time; None where none has."""
    if Column.TIMESTAMP not in frame.columns:
        return None
    time = frame[Column.TIMESTAMP]
    time = time.cast(pl.Float64) if time.dtype.is_decimal() else time  # a type that numpy has
    if not (time.dtype.is_numeric() or time.dtype.is_temporal()):
        return None
    count = frame[Column.COUNT] if Column.COUNT in frame.columns else np.ones(len(frame), dtype=np.int64)
    known = pl.DataFrame({"item": item, "time": time, "count": count}).drop_nulls("time")
    return known if known.height else None


def _holds_logs(folder: Path) -> bool:
    """Whether a folder is one of logs: it has a file that we read, and is no dataset and no run."""
    ours = any((folder / name).exists() for name in OURS)
    return not ours and any(ending_of(file.name) in BY_ENDING for file in folder.rglob("*"))
