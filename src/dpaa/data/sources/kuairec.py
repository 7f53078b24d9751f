"""KuaiRec: 7,176 users of a video app and a fully observed part, 1,411 users × 3,327 videos (Gao et al., CIKM 2022).

Watching more than twice the length of a video is a positive. `big_matrix.csv`, what the app happened to show, is the
training split; `small_matrix.csv`, where every user saw every video, is validation (one third) and test (two thirds),
and its videos are the candidates.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from dpaa.data.columns import Column
from dpaa.data.dataset import Dataset
from dpaa.data.log import Log, once_each
from dpaa.data.parquet import absolute
from dpaa.data.prepare import VALIDATION_EXPOSURE
from dpaa.data.sources.expected import compare, find_file
from dpaa.data.splits import random_global
from dpaa.data.tables import TextTable, check_file
from dpaa.data.text_lines import check_rows
from dpaa.errors import InputError

POSITIVE = 2.0
"""A watch ratio above this is a positive."""

EXPECTED = {
    "users": 7_176,
    "videos": 10_728,
    "positive rows": 936_390,
    "users of the small matrix": 1_411,
    "videos of the small matrix": 3_327,
    "positive rows of the small matrix": 217_175,
}

_SCHEMA = {"user_id": pl.Int64, "video_id": pl.Int64, "timestamp": pl.Float64, "watch_ratio": pl.Float64}


@dataclass(frozen=True, eq=False)
class _Matrix:
    positives: pl.DataFrame
    users: int
    videos: pl.Series
    rows: int


def kuairec(folder: str | Path, *, seed: int = 0, check: bool = True) -> Dataset:
    """KuaiRec from the official files, with the ids of the files."""
    big_file = find_file(Path(folder), "big_matrix.csv", "data")
    big, small = _read_matrix(big_file), _read_matrix(find_file(Path(folder), "small_matrix.csv", "data"))
    found = {
        "users": big.users,
        "videos": len(big.videos),
        "positive rows": big.positives.height,
        "users of the small matrix": small.users,
        "videos of the small matrix": len(small.videos),
        "positive rows of the small matrix": small.positives.height,
    }
    deviations = compare(str(folder), EXPECTED, found, check)
    train = once_each(Log(big.positives, str(big_file), typed=True))
    seen = once_each(Log(small.positives, "small_matrix.csv", typed=True))
    part = random_global(seen.frame.height, 1 / 3, 0.0, np.random.default_rng(seed))
    dropped = [
        f"{big.rows - big.positives.height:,} rows of the big and {small.rows - small.positives.height:,} of the small "
        f"matrix have a watch ratio of at most {POSITIVE:g} and were dropped"
    ]
    repeated = big.positives.height - train.frame.height
    if repeated:
        dropped.append(f"{repeated:,} positive rows of the big matrix repeat a pair; each pair counts once")
    return Dataset.of(
        {
            "train": train.frame,
            "valid": seen.frame.filter(pl.Series(part == 1)),
            "test": seen.frame.filter(pl.Series(part == 0)),
        },
        name="kuairec",
        candidates=small.videos,
        about={
            "source": "KuaiRec, big_matrix.csv and small_matrix.csv",
            "positive": f"watch_ratio > {POSITIVE:g}",
            "split": "big matrix for training; of the small one one third validation, two thirds test",
            "seed": seed,
            VALIDATION_EXPOSURE: "unbiased",
        },
        notes=[*deviations, *dropped],
    )


def _read_matrix(file: Path) -> _Matrix:
    """The positives and the counts of a matrix, in one walk through the file without keeping its rows."""
    check_file(file)
    table = TextTable.open(file, "csv")
    missing = [column for column in _SCHEMA if column not in table.columns]
    if missing:
        raise InputError(f"{file} has no column {missing[0]!r}; use the official file")
    check_rows(file, ",", len(table.header))
    rows = pl.scan_csv(absolute(file), schema_overrides=_SCHEMA, glob=False).select(*_SCHEMA)
    positives = rows.filter(pl.col("watch_ratio") > POSITIVE).select(
        pl.col("user_id").alias(Column.USER),
        pl.col("video_id").alias(Column.ITEM),
        pl.col("watch_ratio").alias(Column.RATING),
        Column.TIMESTAMP,
    )
    needed = ["user_id", "video_id", "watch_ratio"]
    totals = rows.select(
        pl.len().alias("rows"),
        pl.col("user_id").n_unique().alias("users"),
        pl.sum_horizontal(pl.col(needed).null_count()).alias("empty"),
    )
    videos = rows.select(pl.col("video_id").unique())
    try:
        liked, count, shown = pl.collect_all([positives, totals, videos], engine="streaming")
    except pl.exceptions.PolarsError as error:
        raise _explain(table, error) from error
    if count["empty"].item():
        raise _explain(table)
    if liked.is_empty():
        raise InputError(f"{file} has no watch_ratio above {POSITIVE:g}; use the official file")
    return _Matrix(liked, count["users"].item(), shown["video_id"].sort(), count["rows"].item())


def _explain(table: TextTable, error: Exception | None = None) -> InputError:
    """Which line is wrong; times may be missing."""
    frame = table.read(list(_SCHEMA))
    for column in _SCHEMA:
        values = frame[column]
        numbers = values.cast(_SCHEMA[column], strict=False)
        wrong = numbers.is_null() & values.is_not_null() if column == Column.TIMESTAMP else numbers.is_null()
        if wrong.any():
            row = int(wrong.arg_max() or 0)
            found = "nothing" if values[row] is None else repr(values[row])
            wanted = "a whole number" if _SCHEMA[column] == pl.Int64 else "a number"
            return InputError(
                f"column {column!r} has {found} in {table.place(row)} where {wanted} should be; use the official file"
            )
    return InputError(f"{table.name} cannot be read ({str(error).partition(chr(10))[0]}); use the official file")
