"""KuaiRec: 7,176 users of a video app and a fully observed part, 1,411 users × 3,327 videos (Gao et al., CIKM 2022).

Watching more than twice the length of a video is a positive. `big_matrix.csv`, what the app happened to show, is the
training split; `small_matrix.csv`, where every user saw every video, is validation (one third) and test (two thirds),
and its videos are the candidates.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from dpaa.data._engine import Engine, in_words
from dpaa.data._values import Wanted, read_values
from dpaa.data.columns import Column
from dpaa.data.dataset import Dataset
from dpaa.data.inputs import open_table
from dpaa.data.sources.published import Published
from dpaa.errors import InputError

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
    "user_id": Column.USER,
    "video_id": Column.ITEM,
    "watch_ratio": Column.RATING,
    "timestamp": Column.TIMESTAMP,
}
"""Name in the files → ours; times alone may be missing."""


def kuairec(folder: str | Path, *, seed: int = 0, check: bool = True) -> Dataset:
    """KuaiRec from the official files, with the ids of the files."""
    (big, videos, in_big), (small, shown, in_small) = map(_read_matrix, SOURCE.find(folder, "data"))
    numbers = (in_big["users"], len(videos), big.height, in_small["users"], len(shown), small.height)
    train, seen = (_once_each(frame) for frame in (big, small))
    notes = [
        f"{in_big['rows'] - big.height:,} rows of the big and {in_small['rows'] - small.height:,} of the small "
        f"matrix have a watch ratio of at most {POSITIVE:g} and were dropped"
    ]
    if repeated := big.height - train.height:
        notes.append(f"{repeated:,} positive rows of the big matrix repeat a pair; each pair counts once")
    found = dict(zip(SOURCE.expected, numbers, strict=True))
    return SOURCE.dataset(folder, train, seen, found, notes, seed=seed, check=check, candidates=shown)


def _read_matrix(file: Path) -> tuple[pl.DataFrame, pl.Series, dict[str, int]]:
    """The positives in the order of the file, the videos, and the number of users and rows."""
    table = open_table(file, "csv")
    missing = [column for column in COLUMNS if column not in table.columns]
    if missing:
        raise InputError(f"{file} has no column {missing[0]!r}; use the official file")
    wanted = {
        role: Wanted(column, "id" if column.endswith("_id") else "number", required=column != "timestamp")
        for column, role in COLUMNS.items()
    }
    with Engine() as engine, in_words(str(file)):
        try:
            values = read_values(engine, table, wanted, may_drop=False)
        except InputError as error:
            raise InputError(f"{str(error).partition(';')[0]}; use the official file") from None
        if values.columns[Column.USER] != "BIGINT" or values.columns[Column.ITEM] != "BIGINT":
            raise InputError(f"{file} has users or videos that are no whole numbers; use the official file")
        watched = engine.frame(f"SELECT * FROM sound WHERE rating > {POSITIVE}")
        videos = engine.frame("SELECT DISTINCT item_id FROM sound ORDER BY item_id")[Column.ITEM]
        rows, users = engine.row("SELECT count(*), count(DISTINCT user_id) FROM sound")
    if watched.is_empty():
        raise InputError(f"{file} has no watch_ratio above {POSITIVE:g}; use the official file")
    return watched, videos, {"rows": rows, "users": users}


def _once_each(frame: pl.DataFrame) -> pl.DataFrame:
    """Each pair once, the earliest, in the order of the file: the draws of published splits go by it."""
    first = frame.with_row_index("_row").sort(Column.TIMESTAMP, Column.RATING, "_row", nulls_last=True)
    return first.unique([Column.USER, Column.ITEM], keep="first").sort("_row").drop("_row")
