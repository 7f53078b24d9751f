"""One table of interactions becomes a dataset: positives, each pair once, rare users and items out, split."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpaa.data.dataset import VALIDATION_EXPOSURE, Dataset, SplitName
from dpaa.data.log import ColumnNames, once_each, read_log
from dpaa.data.positive import PositiveRule
from dpaa.data.splits import SplitRule, drop_rare, split_frame
from dpaa.data.tables import Table, open_table

if TYPE_CHECKING:
    import polars as pl


def from_file(
    path: str | Path,
    *,
    fmt: str | None = None,
    names: ColumnNames | None = None,
    positive: str | None = None,
    split: SplitRule | None = SplitRule(),  # noqa: B008  (frozen)
    min_user_interactions: int = 1,
    min_item_interactions: int = 1,
    keep_duplicates: bool = False,
    seed: int = 0,
) -> Dataset:
    """A dataset from a log file (CSV, TSV, Parquet, RecBole `.inter`, list form)."""
    return from_table(
        open_table(path, fmt),
        name=Path(path).name.partition(".")[0],
        names=names,
        positive=positive,
        split=split,
        min_user_interactions=min_user_interactions,
        min_item_interactions=min_item_interactions,
        keep_duplicates=keep_duplicates,
        seed=seed,
    )


def from_table(
    table: Table,
    *,
    name: str,
    names: ColumnNames | None = None,
    positive: str | None = None,
    split: SplitRule | None = None,
    min_user_interactions: int = 1,
    min_item_interactions: int = 1,
    keep_duplicates: bool = False,
    seed: int = 0,
) -> Dataset:
    """A dataset from a table; without a split rule all pairs are for training."""
    rule = None if positive is None else PositiveRule.parse(positive)
    log = once_each(read_log(table, names, rule), keep_duplicates)
    frame, rare = drop_rare(log.frame, min_user_interactions, min_item_interactions)
    about: dict[str, object] = {
        "source": table.name,
        "positive": "every row" if rule is None else str(rule),
        "split": "all for training" if split is None else str(split),
        "seed": seed,
        VALIDATION_EXPOSURE: "biased",
    }
    frames: dict[SplitName, pl.DataFrame] = {"train": frame}
    cut: list[str] = []
    if split is not None:
        frames, cut = split_frame(frame, split, seed, table.name)
    return Dataset.of(frames, name=name, about=about, notes=[*log.notes, *rare, *cut])
