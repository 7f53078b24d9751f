"""What an audit looks at: who took what, and when, from a prepared dataset, a log file or a dataframe."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpaa.data._values import Wanted, read_frame
from dpaa.data.attributes import attributes_of
from dpaa.data.columns import Column
from dpaa.data.dataset import Dataset, read_dataset
from dpaa.data.ids import distinct_ids, encode
from dpaa.data.inputs import BY_ENDING, OURS, TextForm, ending_of, open_log, open_table
from dpaa.data.log import ColumnNames, Log, Reading, read_log
from dpaa.data.popularity import popular_items
from dpaa.data.positive import PositiveRule
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
    repeated: bool
    """Whether pairs are known to have occurred again later."""
    candidates: Ints | None = None
    """Indices of the items that may be recommended; None = all."""
    notes: tuple[str, ...] = ()
    titles: pl.Series | None = None
    """(n_items,) names of the items for people, where they are known."""
    invalid: pl.DataFrame | None = None
    """Faulty rows that were left out: `source, row, fault, content`."""

    @property
    def n_items(self) -> int:
        """Items that are known, with or without a pair."""
        return len(self.item_ids)

    @property
    def n_candidates(self) -> int:
        """Items that may be recommended."""
        return self.n_items if self.candidates is None else len(self.candidates)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Interactions of each item.  Returns (n_items,)."""
        return np.bincount(self.item, self.count, minlength=self.n_items).astype(np.int64)

    @cached_property
    def history_lengths(self) -> NDArray[np.int64]:
        """Distinct items of each user.  Returns (n_users,)."""
        return np.bincount(self.user, minlength=len(self.user_ids))

    @cached_property
    def popular(self) -> NDArray[np.bool_]:
        """The fewest items that have 80 % of the interactions.  Returns (n_items,)."""
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
    """A prepared dataset (or its folder), a log (files, folders, patterns, `-`, URLs) or a dataframe.

    Of a dataset, the training split: validation and test are not looked at.  Of a log, the positive rows, each pair
    once, as `dpaa data log` reads them.
    """
    paths = _paths(data)
    folder = len(paths) == 1 and Path(paths[0]).is_dir() and not _holds_logs(Path(paths[0]))
    if isinstance(data, Dataset) or folder:
        of_text = form not in (None, TextForm())
        if fmt or positive or keep_duplicates or of_text or drop_invalid or (names or ColumnNames()) != ColumnNames():
            raise InputError(
                f"{'the dataset' if isinstance(data, Dataset) else paths[0]} is prepared already: format, columns, "
                "--positive, --drop-invalid and --keep-duplicates go with a log; leave them out"
            )
        if items is not None:
            raise InputError("the dataset is prepared already, with what is known of its items; leave --items out")
        return _of_dataset(data if isinstance(data, Dataset) else read_dataset(paths[0]))
    table = open_log(paths, fmt, form) if paths else as_table(data, "the frame")
    rule = None if positive is None else PositiveRule.parse(positive)
    log = read_log(table, names, rule, Reading(drop_invalid), once=True, keep_duplicates=keep_duplicates)
    repeated = any("duplicate pair" in note for note in log.notes)
    return _of_log(f"log {table.name}", log, repeated, items, (names or ColumnNames()).item)


def _of_log(source: str, log: Log, repeated: bool, items: Any, item_column: str | None) -> Interactions:
    frame = log.frame
    user_ids, item_ids = (distinct_ids([frame[column]]) for column in (Column.USER, Column.ITEM))
    user, item = encode(frame[Column.USER], user_ids), encode(frame[Column.ITEM], item_ids)
    count = frame[Column.COUNT].to_numpy() if Column.COUNT in frame.columns else None
    times = _timed(item, frame[Column.TIMESTAMP], count) if Column.TIMESTAMP in frame.columns else None
    found = Interactions(
        source, user_ids, item_ids, user, item, count, times, repeated, notes=log.notes, invalid=log.invalid
    )
    if items is None:
        return found
    named = open_table(items) if isinstance(items, str | Path) else as_table(items, "the items frame")
    known, notes = attributes_of(named, item_ids, item_column)
    return replace(found, notes=(*log.notes, *notes), titles=known.titles)


def _of_dataset(data: Dataset) -> Interactions:
    train, source = data.train, f"the training split of dataset {data.name}"
    repeated = train.count is not None and bool((train.count > 1).any())
    return Interactions(
        *(source, data.user_ids, data.item_ids, train.user, train.item, train.count),
        *(_times_of(data), repeated, data.candidates),
        titles=data.titles,
    )


def _times_of(data: Dataset) -> pl.DataFrame | None:
    """The times of the training pairs, from memory or from the folder."""
    if data.path is None:
        columns = data.columns.get("train", pl.DataFrame())
        has_times = Column.TIMESTAMP in columns.columns
        return _timed(data.train.item, columns[Column.TIMESTAMP], data.train.count) if has_times else None
    table = open_table(data.path / "train.parquet", "parquet")
    if Column.TIMESTAMP not in table.columns:
        return None
    wanted = {
        Column.ITEM: Wanted(Column.ITEM, "id"),
        Column.TIMESTAMP: Wanted(Column.TIMESTAMP, "time", required=False),
    }
    if Column.COUNT in table.columns:
        wanted[Column.COUNT] = Wanted(Column.COUNT, "number")
    frame = read_frame(table, wanted)
    if Column.TIMESTAMP not in frame.columns:
        return None
    count = frame[Column.COUNT].to_numpy() if Column.COUNT in frame.columns else None
    return _timed(encode(frame[Column.ITEM], data.item_ids), frame[Column.TIMESTAMP], count)


def _timed(item: Ints, time: pl.Series, count: Ints | None) -> pl.DataFrame | None:
    """`item, time, count` of the pairs that have a time; None where none has."""
    time = time.cast(pl.Float64) if time.dtype.is_decimal() else time  # a type that numpy has
    columns = {"item": item, "time": time, "count": np.ones(len(item), dtype=np.int64) if count is None else count}
    known = pl.DataFrame(columns).filter(pl.col("time").is_not_null())
    return known if known.height else None


def _paths(data: Any) -> list[str | Path]:
    """What names a log: a path, or several; nothing for a dataframe."""
    if isinstance(data, str | Path):
        return [data]
    several = isinstance(data, list | tuple) and bool(data) and all(isinstance(one, str | Path) for one in data)
    return list(data) if several else []


def _holds_logs(folder: Path) -> bool:
    """Whether a folder is one of logs: it has a file that we read, and is no dataset and no run."""
    ours = any((folder / name).exists() for name in OURS)
    return not ours and any(ending_of(file.name) in BY_ENDING for file in folder.rglob("*"))
