"""Coat Shopping: 290 users rated 24 coats of their choice and 16 random ones, of 300 (Schnabel et al., ICML 2016).

`train.ascii` and `test.ascii` are matrices of ratings from 1 to 5, 0 = not rated. The self-selected ratings are the
training split; the random ones, free of selection bias, are validation (one third) and test (two thirds).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from dpaa.data.columns import Column
from dpaa.data.dataset import Dataset
from dpaa.data.prepare import VALIDATION_EXPOSURE
from dpaa.data.sources.expected import compare, find_file, histogram
from dpaa.data.splits import random_global
from dpaa.data.tables import check_file
from dpaa.data.text_lines import text_lines
from dpaa.errors import InputError

POSITIVE = 3
"""Ratings from this one are positives."""

EXPECTED = {
    "users": 290,
    "coats": 300,
    **{f"training ratings of {i}": n for i, n in enumerate((1901, 1437, 1717, 1275, 630), start=1)},
    **{f"test ratings of {i}": n for i, n in enumerate((1879, 899, 1002, 641, 219), start=1)},
}


def coat(folder: str | Path, *, seed: int = 0, check: bool = True) -> Dataset:
    """Coat from the official files; users and coats are numbered from 0, as rows and columns of the matrices."""
    train_matrix = _read_matrix(find_file(Path(folder), "train.ascii"))
    test_matrix = _read_matrix(find_file(Path(folder), "test.ascii"))
    if train_matrix.shape != test_matrix.shape:
        raise InputError(
            f"train.ascii in {folder} is {train_matrix.shape[0]} × {train_matrix.shape[1]}, but test.ascii is "
            f"{test_matrix.shape[0]} × {test_matrix.shape[1]}; use two matrices of the same users and coats"
        )
    train, test = _ratings(train_matrix), _ratings(test_matrix)
    found = {
        "users": train_matrix.shape[0],
        "coats": train_matrix.shape[1],
        **histogram(train[Column.RATING], "training"),
        **histogram(test[Column.RATING], "test"),
    }
    deviations = compare(str(folder), EXPECTED, found, check)
    positive = pl.col(Column.RATING) >= POSITIVE
    chosen, random = train.filter(positive), test.filter(positive)
    if chosen.is_empty():
        raise InputError(f"train.ascii in {folder} has no rating from {POSITIVE}; use the official file")
    part = random_global(random.height, 1 / 3, 0.0, np.random.default_rng(seed))
    dropped = (
        f"{train.height - chosen.height:,} self-selected and {test.height - random.height:,} random ratings "
        f"are below {POSITIVE} and were dropped"
    )
    return Dataset.of(
        {
            "train": chosen,
            "valid": random.filter(pl.Series(part == 1)),
            "test": random.filter(pl.Series(part == 0)),
        },
        name="coat",
        about={
            "source": "Coat Shopping, train.ascii and test.ascii",
            "positive": f"rating >= {POSITIVE}",
            "split": "self-selected for training; of the random ones one third validation, two thirds test",
            "seed": seed,
            VALIDATION_EXPOSURE: "unbiased",
        },
        notes=[*deviations, dropped],
    )


def _ratings(matrix: np.ndarray[tuple[int, int], np.dtype[np.int64]]) -> pl.DataFrame:
    user, item = np.nonzero(matrix)
    return pl.DataFrame({Column.USER: user, Column.ITEM: item, Column.RATING: matrix[user, item]})


def _read_matrix(file: Path) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    check_file(file)
    rows: list[list[int]] = []
    for line, text in enumerate(text_lines(file), start=1):
        words = text.split()
        if not words:
            continue
        if rows and len(words) != len(rows[0]):
            raise InputError(
                f"line {line} of {file} has {len(words)} numbers where the first has {len(rows[0])}; "
                "use the official file"
            )
        wrong = next((word for word in words if word not in {"0", "1", "2", "3", "4", "5"}), None)
        if wrong is not None:
            raise InputError(
                f"line {line} of {file} has {wrong!r}, which is no rating from 1 to 5 and not 0; use the official file"
            )
        rows.append([int(word) for word in words])
    if not rows:
        raise InputError(f"{file} has no ratings; use the official file")
    return np.array(rows, dtype=np.int64)
