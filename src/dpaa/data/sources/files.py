"""Files of the user's own become a dataset: a log that is split by a rule, or one file per split."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpaa.data.columns import SPLITS
from dpaa.data.dataset import Dataset
from dpaa.data.inputs import TextForm, name_of, open_log, open_table
from dpaa.data.prepare import one_table, table_per_split
from dpaa.data.splits import SplitRule


def from_file(
    path: str | Path | Sequence[str | Path],
    *,
    fmt: str | None = None,
    form: TextForm | None = None,
    split: SplitRule | None = SplitRule(),  # noqa: B008  (frozen)
    **how: Any,
) -> Dataset:
    """A dataset from a log: files, folders, patterns, `-`; `how` as in `prepare.Recipe`."""
    return Dataset.of_prepared(one_table(open_log(path, fmt, form), split, **how), name_of(path))


def from_files(
    train: str | Path,
    valid: str | Path | None = None,
    test: str | Path | None = None,
    candidates: str | Path | None = None,
    *,
    name: str = "splits",
    fmt: str | None = None,
    form: TextForm | None = None,
    **how: Any,
) -> Dataset:
    """A dataset from one file per split and optionally one of the items to recommend; `how` as in `table_per_split`."""
    paths = {"train": train, "valid": valid, "test": test}
    tables = {split: open_log(path, fmt, form) for split in SPLITS if (path := paths[split]) is not None}
    allowed = None if candidates is None else open_table(candidates)
    return Dataset.of_prepared(table_per_split(tables, allowed, **how), name)
