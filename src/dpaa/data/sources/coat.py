"""Coat Shopping: 290 users rated 24 coats of their choice and 16 random ones, of 300 (Schnabel et al., ICML 2016).

`train.ascii` and `test.ascii` are matrices of ratings from 1 to 5, 0 = not rated. The self-selected ratings are the
training split; the random ones, free of selection bias, are validation (one third) and test (two thirds).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpaa._io import read_text
from dpaa.data.columns import Column
from dpaa.data.dataset import Dataset
from dpaa.data.inputs import check_file
from dpaa.data.sources.published import Published, histogram, rating_counts
from dpaa.errors import InputError

LARGEST = 10_000_000
"""Bytes; the official files have fewer than a million."""
SOURCE = Published(
    name="coat",
    title="Coat Shopping",
    files=("train.ascii", "test.ascii"),
    positive="rating >= 3",
    split="self-selected for training; of the random ones one third validation, two thirds test",
    valid_from="test",
    valid_share=1 / 3,
    expected={
        "users": 290,
        "coats": 300,
        **rating_counts("training", (1901, 1437, 1717, 1275, 630)),
        **rating_counts("test", (1879, 899, 1002, 641, 219)),
    },
)


def coat(folder: str | Path, *, seed: int = 0, check: bool = True) -> Dataset:
    """Coat from the official files; users and coats are numbered from 0, as rows and columns of the matrices."""
    matrices = [_read_matrix(file) for file in SOURCE.find(folder)]
    (users, coats), other = (matrix.shape for matrix in matrices)
    if (users, coats) != other:
        raise InputError(
            f"train.ascii in {folder} is {users} × {coats}, but test.ascii is {other[0]} × {other[1]}; "
            "use two matrices of the same users and coats"
        )
    train, test = (_ratings(matrix) for matrix in matrices)
    found = {"users": users, "coats": coats, **histogram("training", train), **histogram("test", test)}
    chosen, random, dropped = SOURCE.positives(folder, train, test)
    return SOURCE.dataset(folder, chosen, random, found, [dropped], seed=seed, check=check)


def _ratings(matrix: NDArray[np.int64]) -> pl.DataFrame:
    user, item = np.nonzero(matrix)
    return pl.DataFrame({Column.USER: user, Column.ITEM: item, Column.RATING: matrix[user, item]})


def _read_matrix(file: Path) -> NDArray[np.int64]:
    check_file(file)
    rows: list[list[str]] = []
    for line, text in enumerate(read_text(file, LARGEST).splitlines(), start=1):
        words = text.split()
        wrong = next((word for word in words if word not in {"0", "1", "2", "3", "4", "5"}), None)
        if wrong is not None:
            raise InputError(
                f"line {line} of {file} has {wrong!r}, which is no rating from 1 to 5 and not 0; use the official file"
            )
        if words and rows and len(words) != len(rows[0]):
            raise InputError(
                f"line {line} of {file} has {len(words)} numbers where the first has {len(rows[0])}; "
                "use the official file"
            )
        rows += [words] if words else []
    if not rows:
        raise InputError(f"{file} has no ratings; use the official file")
    return np.array(rows).astype(np.int64)
