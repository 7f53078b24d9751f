"""What an audit looks at: who took what, and when, from a prepared dataset, a log file or a dataframe."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpaa.data.columns import Column
from dpaa.data.dataset import Dataset, read_dataset
from dpaa.data.ids import distinct_ids, encode
from dpaa.data.log import ColumnNames, once_each, outside_calendar, plain_numbers, read_log
from dpaa.data.parquet import parquet_schema, read_parquet
from dpaa.data.popularity import popular_items
from dpaa.data.positive import PositiveRule
from dpaa.data.tables import Table, as_table, open_table
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
    ) -> Interactions:
        """The positive rows of a log, each pair once, as `dpaa data log` reads them."""
        rule = None if positive is None else PositiveRule.parse(positive)
        rows = read_log(table, names, rule)
        log = once_each(rows, keep_duplicates)
        repeated = log.frame.height < rows.frame.height
        frame = log.frame
        del rows  # as large as the log
        user_ids, item_ids = (distinct_ids([frame[column]]) for column in (Column.USER, Column.ITEM))
        item = encode(frame[Column.ITEM], item_ids)
        count = frame[Column.COUNT].to_numpy() if Column.COUNT in frame.columns else None
        return cls(
            f"log {table.name}",
            user_ids,
            item_ids,
            encode(frame[Column.USER], user_ids),
            item,
            count,
            Times(item, frame[Column.TIMESTAMP], count, repeated) if Column.TIMESTAMP in frame.columns else None,
            None,
            log.notes,
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
) -> Interactions:
    """A prepared dataset (or its folder), a log file (CSV, TSV, Parquet, `.inter`, list form) or a dataframe."""
    folder = isinstance(data, str | Path) and Path(data).is_dir()
    if isinstance(data, Dataset) or folder:
        if fmt or positive or keep_duplicates or (names or ColumnNames()) != ColumnNames():
            raise InputError(
                f"{'the dataset' if isinstance(data, Dataset) else data} is prepared already: format, columns, "
                "--positive and --keep-duplicates go with a log; leave them out"
            )
        return Interactions.of_dataset(data if isinstance(data, Dataset) else read_dataset(data))
    table = open_table(data, fmt) if isinstance(data, str | Path) else as_table(data, "the frame")
    return Interactions.of_table(table, names, positive, keep_duplicates)


def _times_of(dataset: Dataset) -> Times | None:
    """The times of the training pairs, from memory or from the folder."""
    if dataset.path is None:
        columns = dataset.columns.get("train")
        if columns is None or Column.TIMESTAMP not in columns.columns:
            return None
        return Times(dataset.train.item, columns[Column.TIMESTAMP], dataset.train.count, _repeated(dataset))
    file = dataset.path / "train.parquet"
    try:
        present = parquet_schema(file)
        if Column.TIMESTAMP not in present:
            return None
        wanted = [column for column in (Column.ITEM, Column.TIMESTAMP, Column.COUNT) if column in present]
        frame = read_parquet(file, wanted)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f"{file} is not a readable Parquet file; make it again with `dpaa data`") from error
    time = frame[Column.TIMESTAMP]
    known = time.is_not_nan() if time.dtype.is_float() else time.is_not_null()
    told = time.dtype.is_numeric() or (isinstance(time.dtype, pl.Datetime) and not outside_calendar(time).any())
    if not told or not known.fill_null(value=False).all():
        raise InputError(f"column 'timestamp' of {file} must hold numbers or datetimes; make it again with `dpaa data`")
    count = frame[Column.COUNT].to_numpy() if Column.COUNT in wanted else None
    if time.dtype.is_numeric():
        time = plain_numbers(time)
    return Times(encode(frame[Column.ITEM], dataset.item_ids), time, count, _repeated(dataset))


def _repeated(dataset: Dataset) -> bool:
    """Whether a training pair occurred more than once, as far as the dataset tells."""
    return dataset.train.count is not None and bool((dataset.train.count > 1).any())
