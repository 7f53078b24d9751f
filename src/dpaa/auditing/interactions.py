"""What an audit looks at: who took what, and when, from a prepared dataset, a log file or a dataframe."""

from __future__ import annotations

from dataclasses import dataclass
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
from dpaa.data.log import ColumnNames, Reading, read_log
from dpaa.data.popularity import popular_items
from dpaa.data.positive import PositiveRule
from dpaa.data.tables import Table, as_table
from dpaa.errors import InputError
from dpaa.evaluation.tastes import mean_per_row, tastes

Ints = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Times:
    """When each pair was made (the first time, if it was repeated), in an order of its own."""

    item: Ints
    """(n,)"""
    time: pl.Series
    """(n,): numbers, or Datetime in UTC."""
    count: Ints | None
    """(n,)"""
    repeated: bool
    """Whether pairs are known to have come again later."""

    @classmethod
    def of(cls, item: Ints, time: pl.Series, count: Ints | None, repeated: bool) -> Times | None:
        """Of the pairs that have a time; None where none has."""
        if not time.has_nulls():
            return cls(item, time, count, repeated)
        known = time.is_not_null()
        rows = known.to_numpy()
        return (
            cls(item[rows], time.filter(known), None if count is None else count[rows], repeated) if any(rows) else None
        )


@dataclass(frozen=True, eq=False)
class Interactions:
    """Distinct (user, item) pairs with indices, in any order."""

    source: str
    """Where they come from, in words."""
    user_ids: pl.Series
    """Ascending; the users that are known, with or without a pair.  (n_users,)"""
    item_ids: pl.Series
    """(n_items,)"""
    user: Ints
    """(n,)"""
    item: Ints
    """(n,)"""
    count: Ints | None
    """(n,): how often each pair occurred; None = once each."""
    times: Times | None
    """Where they are known."""
    candidates: Ints | None
    """Indices of the items that may be recommended; None = all."""
    notes: tuple[str, ...] = ()
    titles: pl.Series | None = None
    """What people call the items; None where nobody said.  (n_items,)"""
    invalid: pl.DataFrame | None = None
    """Rows with faults that were left out: `source, row, fault, content`."""

    @classmethod
    def of_dataset(cls, dataset: Dataset) -> Interactions:
        """The training split: validation and test are not looked at."""
        train = dataset.train
        return cls(
            f"the training split of dataset {dataset.name}",
            dataset.user_ids,
            dataset.item_ids,
            train.user,
            train.item,
            train.count,
            _times_of(dataset),
            dataset.candidates,
            titles=dataset.titles,
        )

    @classmethod
    def of_table(
        cls,
        table: Table,
        names: ColumnNames | None = None,
        positive: str | None = None,
        keep_duplicates: bool = False,
        drop_invalid: bool = False,
        items: Table | None = None,
    ) -> Interactions:
        """The positive rows of a log, each pair once, as `dpaa data log` reads them; `items` has titles."""
        rule = None if positive is None else PositiveRule.parse(positive)
        log = read_log(table, names, rule, Reading(drop_invalid), once=True, keep_duplicates=keep_duplicates)
        repeated = any("duplicate pair" in note for note in log.notes)
        frame = log.frame
        user_ids, item_ids = (distinct_ids([frame[column]]) for column in (Column.USER, Column.ITEM))
        item = encode(frame[Column.ITEM], item_ids)
        count = frame[Column.COUNT].to_numpy() if Column.COUNT in frame.columns else None
        times = (
            Times.of(item, _comparable(frame[Column.TIMESTAMP]), count, repeated)
            if Column.TIMESTAMP in frame.columns
            else None
        )
        known, told = (None, []) if items is None else attributes_of(items, item_ids, (names or ColumnNames()).item)
        return cls(
            f"log {table.name}",
            user_ids,
            item_ids,
            encode(frame[Column.USER], user_ids),
            item,
            count,
            times,
            None,
            (*log.notes, *told),
            None if known is None else known.titles,
            log.invalid,
        )

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
    """A prepared dataset (or its folder), a log (files, folders, patterns, `-`, URLs) or a dataframe."""
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
        return Interactions.of_dataset(data if isinstance(data, Dataset) else read_dataset(paths[0]))
    table = open_log(paths, fmt, form) if paths else as_table(data, "the frame")
    named = items if items is None or isinstance(items, Table) else _items_table(items)
    return Interactions.of_table(table, names, positive, keep_duplicates, drop_invalid, named)


def _paths(data: Any) -> list[str | Path]:
    """What names a log: a path, or several; nothing for a dataframe."""
    if isinstance(data, str | Path):
        return [data]
    several = isinstance(data, list | tuple) and bool(data) and all(isinstance(one, str | Path) for one in data)
    return list(data) if several else []


def _items_table(items: Any) -> Table:
    return open_table(items) if isinstance(items, str | Path) else as_table(items, "the items frame")


def _holds_logs(folder: Path) -> bool:
    """Whether a folder is one of logs: it has a file that we read, and is no dataset and no run."""
    ours = any((folder / name).exists() for name in OURS)
    return not ours and any(ending_of(file.name) in BY_ENDING for file in folder.rglob("*"))


def _times_of(dataset: Dataset) -> Times | None:
    """The times of the training pairs, from memory or from the folder."""
    if dataset.path is None:
        columns = dataset.columns.get("train")
        if columns is None or Column.TIMESTAMP not in columns.columns:
            return None
        return Times.of(dataset.train.item, columns[Column.TIMESTAMP], dataset.train.count, _repeated(dataset))
    table = open_table(dataset.path / "train.parquet", "parquet")
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
    item = encode(frame[Column.ITEM], dataset.item_ids)
    return Times.of(item, _comparable(frame[Column.TIMESTAMP]), count, _repeated(dataset))


def _comparable(time: pl.Series) -> pl.Series:
    """Times in a type that numpy has."""
    return time.cast(pl.Float64) if time.dtype.is_decimal() else time


def _repeated(dataset: Dataset) -> bool:
    """Whether a training pair occurred more than once, as far as the dataset tells."""
    return dataset.train.count is not None and bool((dataset.train.count > 1).any())
