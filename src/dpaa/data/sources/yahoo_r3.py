"""Yahoo! R3: 15,400 users rated songs of their choice, 5,400 of them ten random songs as well (Marlin and Zemel, 2009).

Two files without header, tab-separated `user song rating`. Ratings from 4 are positives; users without a training
positive are left out. Validation is a random 29 % of the training positives, the random ratings are the test.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from dpaa._io import check_regular, read_text
from dpaa.data.columns import Column
from dpaa.data.dataset import Dataset
from dpaa.data.inputs import check_file
from dpaa.data.parquet import absolute
from dpaa.data.sources.published import Published, histogram, rating_counts
from dpaa.errors import InputError

TRAIN_FILE = "ydata-ymusic-rating-study-v1_0-train.txt"
TEST_FILE = "ydata-ymusic-rating-study-v1_0-test.txt"
LARGEST = 100_000_000
"""Bytes; the official files have fewer than five million."""
SOURCE = Published(
    name="yahoo-r3",
    title="Yahoo! R3",
    files=(TRAIN_FILE, TEST_FILE),
    positive="rating >= 4",  # the DPAA paper's text says 3, its counts say 4
    split="of the self-selected a random 0.29 validation; the random ones test",
    valid_from="train",
    valid_share=0.29,
    expected={
        "training users": 15_400,
        "training songs": 1_000,
        "test users": 5_400,
        **rating_counts("training", (97_844, 39_652, 49_131, 48_480, 76_597)),
        **rating_counts("test", (28_417, 13_064, 7_770, 3_371, 1_378)),
        "users with a training positive": 14_382,
        "test positives of those users": 4_671,
    },
)


def yahoo_r3(folder: str | Path, *, seed: int = 0, check: bool = True) -> Dataset:
    """Yahoo! R3 from the official files, with the ids of the files."""
    train, test = (_read_ratings(file) for file in SOURCE.find(folder))
    chosen, random, dropped = SOURCE.positives(folder, train, test)
    users = chosen[Column.USER].unique()
    known = random.filter(pl.col(Column.USER).is_in(users.implode()))
    found = {
        "training users": train[Column.USER].n_unique(),
        "training songs": train[Column.ITEM].n_unique(),
        "test users": test[Column.USER].n_unique(),
        **histogram("training", train),
        **histogram("test", test),
        "users with a training positive": len(users),
        "test positives of those users": known.height,
    }
    cold = f"{random.height - known.height:,} test positives of users without a training positive were dropped"
    return SOURCE.dataset(folder, chosen, known, found, [dropped, cold], seed=seed, check=check)


def _read_ratings(file: Path) -> pl.DataFrame:
    check_file(file)
    if check_regular(file) > LARGEST:
        raise InputError(f"{file} is larger than {LARGEST / 1e6:g} MB, and the official file is not; use that one")
    schema = {Column.USER: pl.Int64, Column.ITEM: pl.Int64, Column.RATING: pl.Int64}
    try:
        frame = pl.read_csv(absolute(file), separator="\t", has_header=False, schema=schema, glob=False)
    except pl.exceptions.PolarsError as error:
        raise _bad_line(file) from error
    if any(frame[name].has_nulls() for name in schema) or not frame[Column.RATING].is_between(1, 5).all():
        raise _bad_line(file)
    if frame.select(Column.USER, Column.ITEM).is_duplicated().any():
        raise InputError(f"{file} has a pair of user and song twice; use the official file")
    return frame


def _bad_line(file: Path) -> InputError:
    """Which line is wrong."""
    for line, text in enumerate(read_text(file, LARGEST).splitlines(), start=1):
        fields = text.rstrip("\r\n").split("\t")
        if len(fields) != 3 or not all(field.isdecimal() for field in fields) or fields[2] not in set("12345"):
            return InputError(
                f"line {line:,} of {file} is {text.strip()!r} instead of user, song and rating (1 to 5) with tabs "
                "between them; use the official file"
            )
    return InputError(f"{file} cannot be read as user, song and rating with tabs between them; use the official file")
