"""Ready-made train, validation and test files become a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dpaa.data.columns import SPLITS
from dpaa.data.dataset import Dataset
from dpaa.data.prepare import table_per_split
from dpaa.data.tables import open_table


def from_files(
    train: str | Path,
    valid: str | Path | None = None,
    test: str | Path | None = None,
    candidates: str | Path | None = None,
    *,
    name: str = "splits",
    fmt: str | None = None,
    **how: Any,
) -> Dataset:
    """A dataset from one file per split, in any of the formats, and optionally one of the items to recommend.

    `how` as in `prepare.table_per_split`.
    """
    paths = {"train": train, "valid": valid, "test": test}
    tables = {split: open_table(path, fmt) for split in SPLITS if (path := paths[split]) is not None}
    allowed = None if candidates is None else open_table(candidates)
    return Dataset.of_prepared(table_per_split(tables, allowed, **how), name)
