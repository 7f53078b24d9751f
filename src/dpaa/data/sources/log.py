"""One file of interactions becomes a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dpaa.data.dataset import Dataset
from dpaa.data.prepare import one_table
from dpaa.data.splits import SplitRule
from dpaa.data.tables import open_table


def from_file(
    path: str | Path,
    *,
    fmt: str | None = None,
    split: SplitRule | None = SplitRule(),  # noqa: B008  (frozen)
    **how: Any,
) -> Dataset:
    """A dataset from a log file (CSV, TSV, Parquet, RecBole `.inter`, list form); `how` as in `prepare.one_table`."""
    return Dataset.of_prepared(one_table(open_table(path, fmt), split=split, **how), Path(path).name.partition(".")[0])
