"""Published datasets: a biased file for training, an unbiased one for the test, known counts, one file split at random.

Coat Shopping (Schnabel et al., ICML 2016): 290 users rated 24 coats of their choice and 16 random ones, of 300.
`train.ascii` and `test.ascii` are matrices of ratings from 1 to 5, 0 = not rated. The self-selected ratings are the
training split; the random ones, free of selection bias, are validation (one third) and test (two thirds).

Yahoo! R3 (Marlin and Zemel, 2009): 15,400 users rated songs of their choice, 5,400 of them ten random songs as well.
Two files without header, tab-separated `user song rating`. Ratings from 4 are positives; users without a training
positive are left out. Validation is a random 29% of the training positives, the random ratings are the test.

KuaiRec (Gao et al., CIKM 2022): 7,176 users of a video app and a fully observed part, 1,411 users × 3,327 videos.
Watching more than twice the length of a video is a positive. `big_matrix.csv`, what the app happened to show, is the
training split; `small_matrix.csv`, where every user saw every video, is validation (one third) and test (two thirds),
and its videos are the candidates.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from dpaa._io import read_text
from dpaa.data._values import Kind, Wanted, read_frame
from dpaa.data.dataset import Dataset
from dpaa.data.ids import IDS, Column
from dpaa.data.inputs import TextForm, open_table
from dpaa.data.log import find_column
from dpaa.data.prepare import VALIDATION_EXPOSURE
from dpaa.data.splits import random_share
from dpaa.errors import InputError

LARGEST = 10_000_000
"""Bytes of a matrix of Coat; the official files have fewer than a million."""
TRAIN_FILE = "ydata-ymusic-rating-study-v1_0-train.txt"
TEST_FILE = "ydata-ymusic-rating-study-v1_0-test.txt"


def _read_matrix(file: Path) -> pl.DataFrame:
    """Read a matrix of ratings; users and items are numbered from 0."""
    lines = read_text(file, LARGEST).splitlines()
    try:
        matrix = np.array([line.split() for line in lines if line.strip()], np.int64)
    except ValueError:
        matrix = np.zeros(0, np.int64)
    if matrix.ndim != 2 or not ((matrix >= 0) & (matrix <= 5)).all():
        raise InputError(f"{file} is not a matrix of ratings from 1 to 5, 0 = none; use the official file")
    user, item = np.nonzero(matrix)
    return pl.DataFrame({Column.USER: user, Column.ITEM: item, Column.RATING: matrix[user, item]})


def _read_rows(file: Path, form: TextForm | None = None) -> pl.DataFrame:
    """Read a table of integer users and items, ratings, and times where there are any, in the order of the file."""
    table = open_table(file, "csv", form)
    kinds: dict[str, Kind] = {Column.USER: "id", Column.ITEM: "id", Column.RATING: "exact"}
    wanted = {role: Wanted(find_column(table, role, None), kind) for role, kind in kinds.items()}
    if Column.TIMESTAMP in table.columns:
        wanted[Column.TIMESTAMP] = Wanted(Column.TIMESTAMP, "time", required=False)
    frame = read_frame(table, wanted)
    if any(frame[column].dtype != pl.Int64 for column in IDS):
        raise InputError(f"{file} has ids that are not whole numbers; use the official file")
    return frame


@dataclass(frozen=True)
class Published:
    """A published dataset.

    Parameters
    ----------
    title : of the dataset
    files : of training and test
    read : reads one of them
    positive : rule for the ratings
    valid_from : which file gives pairs to validation; those of the unbiased one are as good as the test's
    valid_share : share of its pairs for validation
    expected : published counts of users, items and positive rows of each file
    """

    title: str
    files: tuple[str, str]
    read: Callable[[Path], pl.DataFrame]
    positive: str
    valid_from: str
    valid_share: float
    expected: tuple[tuple[int, int, int], tuple[int, int, int]]


read_tsv = partial(_read_rows, form=TextForm("\t", (Column.USER, Column.ITEM, Column.RATING)))
COAT_COUNTS = ((290, 300, 3_622), (290, 300, 1_862))
YAHOO_COUNTS = ((15_400, 1_000, 125_077), (5_400, 1_000, 4_749))
KUAIREC_COUNTS = ((7_176, 10_728, 936_390), (1_411, 3_327, 217_175))
MATRICES, CSV_FILES = ("train.ascii", "test.ascii"), ("big_matrix.csv", "small_matrix.csv")
PUBLISHED = {
    "coat": Published("Coat Shopping", MATRICES, _read_matrix, "rating >= 3", "test", 1 / 3, COAT_COUNTS),
    # The DPAA paper's text says 3, its counts say 4.
    "yahoo-r3": Published("Yahoo! R3", (TRAIN_FILE, TEST_FILE), read_tsv, "rating >= 4", "train", 0.29, YAHOO_COUNTS),
    "kuairec": Published("KuaiRec", CSV_FILES, _read_rows, "watch_ratio > 2", "test", 1 / 3, KUAIREC_COUNTS),
}


def published(name: str, folder: str | Path, *, seed: int = 0, check: bool = True) -> Dataset:
    """Read a published dataset from its official files, with the ids of the files.

    Parameters
    ----------
    name : one of `PUBLISHED`
    folder : of the files
    seed : of the random split
    check : whether other counts than the published ones are refused, or else noted
    """
    source, notes = PUBLISHED[name], []
    is_positive = pl.sql_expr(source.positive.replace("watch_ratio", Column.RATING))
    frames: dict[Any, pl.DataFrame] = {}
    files = []
    for file_name in source.files:  # all are there before the first, which may be large, is read
        paths = [Path(folder, file_name), Path(folder, "data", file_name)]
        files += [file for file in paths if file.is_file()][:1]
        if not files or files[-1].name != file_name:
            raise InputError(f"{folder} has no file {file_name}; name the folder that holds it")
    for split, file, expected in zip(("train", "test"), files, source.expected, strict=True):
        whole = source.read(file)
        rows = whole.filter(is_positive)
        counts = (whole[Column.USER].n_unique(), whole[Column.ITEM].n_unique(), rows.height)
        if counts != expected:
            words = "{:,} users, {:,} items and {:,} positive rows"
            differs = f"{file} has {words.format(*counts)} where the published file has {words.format(*expected)}"
            if check:
                raise InputError(f"{differs}; use the complete file, or in Python check=False")
            notes.append(differs)
        frames[split] = _once_each(rows)
        repeated = rows.height - frames[split].height
        dropped = f"{whole.height - rows.height:,} rows of {file.name} are not positive ({source.positive})"
        notes.append(f"{dropped}, {repeated:,} repeat a pair")
    candidates = whole[Column.ITEM].unique() if name == "kuairec" else None
    if name == "yahoo-r3":
        frames["test"] = frames["test"].join(frames["train"], on=Column.USER, how="semi", maintain_order="left")
    split_up = frames[source.valid_from]
    # By positions, not by ids as for other logs: the order of an official file is fixed, and committed results of
    # `dpaa reproduce` belong to these draws.
    in_valid = pl.Series(random_share(split_up.height, source.valid_share, seed), dtype=pl.Boolean)
    frames |= {source.valid_from: split_up.filter(~in_valid), "valid": split_up.filter(in_valid)}
    about = {
        "source": f"{source.title}, {' and '.join(source.files)}",
        "positive": source.positive,
        "split": f"{source.files[0]} and {source.files[1]}; {source.valid_share:.3g} of {source.valid_from} validation",
        "seed": seed,
        VALIDATION_EXPOSURE: "unbiased" if source.valid_from == "test" else "biased",
    }
    return Dataset.of(frames, name=name, candidates=candidates, about=about, notes=notes)


def _once_each(frame: pl.DataFrame) -> pl.DataFrame:
    """Keep each pair once, the earliest, in the order of the file: the draws of published splits go by it."""
    times = [Column.TIMESTAMP] if Column.TIMESTAMP in frame.columns else []
    first = frame.with_row_index("_row").sort(*times, Column.RATING, "_row", nulls_last=True)
    return first.unique(IDS, keep="first").sort("_row").drop("_row")


coat, yahoo_r3, kuairec = (partial(published, name) for name in PUBLISHED)
