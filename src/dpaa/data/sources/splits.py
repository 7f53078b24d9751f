"""Ready-made train, validation and test tables become a dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpaa.data.columns import Column
from dpaa.data.dataset import SPLITS, Dataset, SplitName
from dpaa.data.log import ColumnNames, Log, as_one_type, once_each, read_candidates, read_log
from dpaa.data.positive import PositiveRule
from dpaa.data.tables import Table, open_table

if TYPE_CHECKING:
    from pathlib import Path


def from_files(
    train: str | Path,
    valid: str | Path | None = None,
    test: str | Path | None = None,
    candidates: str | Path | None = None,
    *,
    name: str = "splits",
    fmt: str | None = None,
    names: ColumnNames | None = None,
    positive: str | None = None,
    keep_duplicates: bool = False,
) -> Dataset:
    """A dataset from one file per split, in any of the formats, and optionally one of the items to recommend."""
    paths = {"train": train, "valid": valid, "test": test}
    return from_tables(
        {split: open_table(path, fmt) for split in SPLITS if (path := paths[split]) is not None},
        None if candidates is None else open_table(candidates),
        name=name,
        names=names,
        positive=positive,
        keep_duplicates=keep_duplicates,
    )


def from_tables(
    tables: dict[SplitName, Table],
    candidates: Table | None = None,
    *,
    name: str,
    names: ColumnNames | None = None,
    positive: str | None = None,
    keep_duplicates: bool = False,
) -> Dataset:
    """A dataset from one table per split; pairs are counted in the training split only."""
    names = names or ColumnNames()
    rule = None if positive is None else PositiveRule.parse(positive)
    logs: list[Log] = [
        once_each(read_log(table, names, rule), keep_duplicates and split == "train") for split, table in tables.items()
    ]
    if candidates is not None:
        logs.append(read_candidates(candidates, names.item))
    logs = as_one_type(logs)
    allowed = None if candidates is None else logs.pop().frame[Column.ITEM]
    about = {
        "source": {split: table.name for split, table in tables.items()},
        "positive": "every row" if rule is None else str(rule),
        "split": "ready-made",
    }
    return Dataset.of(
        {split: log.frame for split, log in zip(tables, logs, strict=True)},
        name=name,
        candidates=allowed,
        about=about,
        notes=[note for log in logs for note in log.notes],
    )
