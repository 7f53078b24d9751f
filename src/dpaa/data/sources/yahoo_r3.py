"""Yahoo! R3: 15,400 users rated songs of their choice, 5,400 of them ten random songs as well (Marlin and Zemel, 2009).

Two files without header, tab-separated `user song rating`. Ratings from 4 are positives; users without a training
positive are left out. Validation is a random 29 % of the training positives, the random ratings are the test.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from dpaa.data.columns import Column
from dpaa.data.dataset import Dataset
from dpaa.data.parquet import absolute
from dpaa.data.prepare import VALIDATION_EXPOSURE
from dpaa.data.sources.expected import compare, find_file, histogram
from dpaa.data.splits import random_global
from dpaa.data.tables import check_file
from dpaa.data.text_lines import check_unpacked, text_lines
from dpaa.errors import InputError

TRAIN_FILE = "ydata-ymusic-rating-study-v1_0-train.txt"
TEST_FILE = "ydata-ymusic-rating-study-v1_0-test.txt"

POSITIVE = 4
"""Ratings from this one are positives. (The DPAA paper's text says 3, its counts say 4.)"""

VALID_SHARE = 0.29

EXPECTED = {
    "training users": 15_400,
    "training songs": 1_000,
    "test users": 5_400,
    **{f"training ratings of {i}": n for i, n in enumerate((97_844, 39_652, 49_131, 48_480, 76_597), start=1)},
    **{f"test ratings of {i}": n for i, n in enumerate((28_417, 13_064, 7_770, 3_371, 1_378), start=1)},
    "users with a training positive": 14_382,
    "test positives of those users": 4_671,
}


def yahoo_r3(folder: str | Path, *, seed: int = 0, check: bool = True) -> Dataset:
    """Yahoo! R3 from the official files, with the ids of the files."""
    train = _read_ratings(find_file(Path(folder), TRAIN_FILE))
    test = _read_ratings(find_file(Path(folder), TEST_FILE))
    positive = pl.col(Column.RATING) >= POSITIVE
    chosen, random = train.filter(positive), test.filter(positive)
    if chosen.is_empty():
        raise InputError(f"{TRAIN_FILE} in {folder} has no rating from {POSITIVE}; use the official file")
    users = chosen[Column.USER].unique()
    known = random.filter(pl.col(Column.USER).is_in(users.implode()))
    found = {
        "training users": train[Column.USER].n_unique(),
        "training songs": train[Column.ITEM].n_unique(),
        "test users": test[Column.USER].n_unique(),
        **histogram(train[Column.RATING], "training"),
        **histogram(test[Column.RATING], "test"),
        "users with a training positive": len(users),
        "test positives of those users": known.height,
    }
    deviations = compare(str(folder), EXPECTED, found, check)
    part = random_global(chosen.height, VALID_SHARE, 0.0, np.random.default_rng(seed))
    dropped = [
        f"{train.height - chosen.height:,} self-selected and {test.height - random.height:,} random ratings "
        f"are below {POSITIVE} and were dropped",
        f"{random.height - known.height:,} test positives of users without a training positive were dropped",
    ]
    return Dataset.of(
        {"train": chosen.filter(pl.Series(part == 0)), "valid": chosen.filter(pl.Series(part == 1)), "test": known},
        name="yahoo-r3",
        about={
            "source": f"Yahoo! R3, {TRAIN_FILE} and {TEST_FILE}",
            "positive": f"rating >= {POSITIVE}",
            "split": f"of the self-selected a random {VALID_SHARE:g} validation; the random ones test",
            "seed": seed,
            VALIDATION_EXPOSURE: "biased",
        },
        notes=[*deviations, *dropped],
    )


def _read_ratings(file: Path) -> pl.DataFrame:
    check_file(file)
    check_unpacked(file)
    schema = {Column.USER: pl.Int64, Column.ITEM: pl.Int64, Column.RATING: pl.Int64}
    try:
        frame = pl.read_csv(absolute(file), separator="\t", has_header=False, schema=schema, glob=False)
    except pl.exceptions.PolarsError as error:
        raise _bad_line(file) from error
    fine = (
        pl.col(Column.USER).is_not_null() & pl.col(Column.ITEM).is_not_null() & pl.col(Column.RATING).is_between(1, 5)
    )
    if not frame.select(fine.fill_null(value=False).all()).item():
        raise _bad_line(file)
    if frame.select(Column.USER, Column.ITEM).is_duplicated().any():
        raise InputError(f"{file} has a pair of user and song twice; use the official file")
    return frame


def _bad_line(file: Path) -> InputError:
    """Which line is wrong."""
    for line, text in enumerate(text_lines(file), start=1):
        fields = text.rstrip("\r\n").split("\t")
        if len(fields) != 3 or not all(field.isdecimal() for field in fields) or fields[2] not in set("12345"):
            return InputError(
                f"line {line:,} of {file} is {text.strip()!r} instead of user, song and rating (1 to 5) with tabs "
                "between them; use the official file"
            )
    return InputError(f"{file} cannot be read as user, song and rating with tabs between them; use the official file")
