"""KuaiRec: 7,176 users of a video app and a fully observed part, 1,411 users × 3,327 videos (Gao et al., CIKM 2022).

Watching more than twice the length of a video is a positive. `big_matrix.csv`, what the app happened to show, is the
training split; `small_matrix.csv`, where every user saw every video, is validation (one third) and test (two thirds),
and its videos are the candidates.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from dpaa.data.columns import Column
from dpaa.data.dataset import Dataset
from dpaa.data.log import Log, once_each
from dpaa.data.parquet import absolute
from dpaa.data.sources.published import Published
from dpaa.data.tables import TextTable, check_file
from dpaa.data.text_lines import check_rows
from dpaa.errors import InputError, reason

POSITIVE = 2.0
"""A watch ratio above this is a positive."""

SOURCE = Published(
    name="kuairec",
    title="KuaiRec",
    files=("big_matrix.csv", "small_matrix.csv"),
    positive=f"watch_ratio > {POSITIVE:g}",
    split="big matrix for training; of the small one one third validation, two thirds test",
    valid_from="test",
    valid_share=1 / 3,
    expected={
        "users": 7_176,
        "videos": 10_728,
        "positive rows": 936_390,
        "users of the small matrix": 1_411,
        "videos of the small matrix": 3_327,
        "positive rows of the small matrix": 217_175,
    },
)
COLUMNS = {
    "user_id": (Column.USER, pl.Int64),
    "video_id": (Column.ITEM, pl.Int64),
    "watch_ratio": (Column.RATING, pl.Float64),
    "timestamp": (Column.TIMESTAMP, pl.Float64),
}
"""Name in the files → ours, and type; times alone may be missing."""


def kuairec(folder: str | Path, *, seed: int = 0, check: bool = True) -> Dataset:
    """KuaiRec from the official files, with the ids of the files."""
    (big, videos, in_big), (small, shown, in_small) = map(_read_matrix, SOURCE.find(folder, "data"))
    numbers = (in_big["users"], len(videos), big.height, in_small["users"], len(shown), small.height)
    train, seen = (once_each(Log(frame, "", typed=True)).frame for frame in (big, small))
    notes = [
        f"{in_big['rows'] - big.height:,} rows of the big and {in_small['rows'] - small.height:,} of the small "
        f"matrix have a watch ratio of at most {POSITIVE:g} and were dropped"
    ]
    if repeated := big.height - train.height:
        notes.append(f"{repeated:,} positive rows of the big matrix repeat a pair; each pair counts once")
    found = dict(zip(SOURCE.expected, numbers, strict=True))
    return SOURCE.dataset(folder, train, seen, found, notes, seed=seed, check=check, candidates=shown)


def _read_matrix(file: Path) -> tuple[pl.DataFrame, pl.Series, dict[str, int]]:
    """The positives, the videos, and the number of users and rows, in one walk that does not keep the rows."""
    check_file(file)
    table = TextTable.open(file, "csv")
    missing = [column for column in COLUMNS if column not in table.columns]
    if missing:
        raise InputError(f"{file} has no column {missing[0]!r}; use the official file")
    check_rows(file, ",", len(table.header))
    schema = {column: dtype for column, (_, dtype) in COLUMNS.items()}
    rows = pl.scan_csv(absolute(file), schema_overrides=schema, glob=False).select(*schema)
    named = rows.rename({column: name for column, (name, _) in COLUMNS.items()})
    totals = rows.select(
        pl.len().alias("rows"),
        pl.col("user_id").n_unique().alias("users"),
        pl.sum_horizontal(pl.exclude("timestamp").null_count()).alias("empty"),
    )
    try:
        queries = [named.filter(pl.col(Column.RATING) > POSITIVE), totals, rows.select(pl.col("video_id").unique())]
        watched, counts, videos = pl.collect_all(queries, engine="streaming")
    except pl.exceptions.PolarsError as error:
        raise _explain(table, reason(error)) from error
    if counts["empty"].item():
        raise _explain(table, "empty values")
    if watched.is_empty():
        raise InputError(f"{file} has no watch_ratio above {POSITIVE:g}; use the official file")
    return watched, videos["video_id"].sort(), counts.row(0, named=True)


def _explain(table: TextTable, why: str) -> InputError:
    """Which line is wrong."""
    frame = table.read(list(COLUMNS)).with_columns(pl.col("timestamp").fill_null("0"))
    for column, (_, dtype) in COLUMNS.items():
        wrong = frame[column].cast(dtype, strict=False).is_null()
        if wrong.any():
            row = int(wrong.arg_max() or 0)
            found = "nothing" if frame[column][row] is None else repr(frame[column][row])
            wanted = "a whole number" if dtype == pl.Int64 else "a number"
            return InputError(
                f"column {column!r} has {found} in {table.place(row)} where {wanted} should be; use the official file"
            )
    return InputError(f"{table.name} cannot be read ({why}); use the official file")
