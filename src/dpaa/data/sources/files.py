"""Files of the user's own become a dataset: one file per split."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dpaa.data.columns import SPLITS
from dpaa.data.dataset import Dataset
from dpaa.data.inputs import TextForm, open_log, open_table
from dpaa.data.prepare import table_per_split


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
    """Make a dataset from one file per split.

    Parameters
    ----------
    train, valid, test : files, folders or patterns
    candidates : file of the items that may be recommended; None = all
    name : of the dataset
    fmt, form : as in `inputs.open_log`
    how : as in `prepare.table_per_split`
    """
    paths = zip(SPLITS, (train, valid, test), strict=True)
    tables = {split: open_log(path, fmt, form) for split, path in paths if path is not None}
    allowed = None if candidates is None else open_table(candidates)
    return Dataset.of_prepared(table_per_split(tables, allowed, **how), name)
