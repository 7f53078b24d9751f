"""What published datasets share: two files, known counts, positives, and one of the files split by chance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from dpaa.data.columns import Column
from dpaa.data.dataset import Dataset
from dpaa.data.positive import PositiveRule
from dpaa.data.prepare import VALIDATION_EXPOSURE
from dpaa.data.splits import random_global
from dpaa.errors import InputError


@dataclass(frozen=True)
class Published:
    """A published dataset: a biased file for training, an unbiased one for the test, and what is known of both."""

    name: str
    title: str
    files: tuple[str, str]
    positive: str
    split: str
    """In words."""
    valid_from: Literal["train", "test"]
    """Which file gives pairs to validation; those of the unbiased one are as good as the test's."""
    valid_share: float
    expected: Mapping[str, int]
    """The published counts."""

    def find(self, folder: str | Path, *below: str) -> list[Path]:
        """The files of a folder, or of a folder in it."""
        return [_find(Path(folder), name, below) for name in self.files]

    def positives(
        self, folder: str | Path, train: pl.DataFrame, test: pl.DataFrame
    ) -> tuple[pl.DataFrame, pl.DataFrame, str]:
        """The positive ratings of both files, and a sentence about the others."""
        rule = PositiveRule.parse(self.positive)
        chosen, random = (frame.filter(rule.holds(frame[Column.RATING])) for frame in (train, test))
        if chosen.is_empty():
            raise InputError(
                f"{self.files[0]} in {folder} has no rating of {rule.number:g} or more; use the official file"
            )
        return (
            chosen,
            random,
            (
                f"{train.height - chosen.height:,} self-selected and {test.height - random.height:,} random ratings "
                f"are below {rule.number:g} and were dropped"
            ),
        )

    def dataset(
        self,
        folder: str | Path,
        train: pl.DataFrame,
        test: pl.DataFrame,
        found: Mapping[str, int],
        notes: Iterable[str],
        *,
        seed: int,
        check: bool,
        candidates: pl.Series | None = None,
    ) -> Dataset:
        """The dataset of these pairs; counts other than the published ones are refused, or noted without `check`."""
        deviations = _compare(str(folder), self.expected, found, check)
        frames = {"train": train, "test": test}
        whole = frames[self.valid_from]
        # By positions, not by ids as for other logs: the order of an official file is fixed, and committed results of
        # `dpaa reproduce` belong to these draws.
        in_valid = pl.Series(random_global(whole.height, self.valid_share, 0.0, np.random.default_rng(seed)) == 1)
        about: dict[str, Any] = {
            "source": f"{self.title}, {' and '.join(self.files)}",
            "positive": self.positive,
            "split": self.split,
            "seed": seed,
            VALIDATION_EXPOSURE: "unbiased" if self.valid_from == "test" else "biased",
        }
        frames |= {self.valid_from: whole.filter(~in_valid), "valid": whole.filter(in_valid)}
        return Dataset.of(frames, name=self.name, candidates=candidates, about=about, notes=[*deviations, *notes])  # type: ignore[arg-type]


def rating_counts(what: str, counts: Iterable[int]) -> dict[str, int]:
    """How often each rating from 1 to 5 occurs, by its name."""
    return {f"{what} ratings of {rating}": count for rating, count in enumerate(counts, start=1)}


def histogram(what: str, frame: pl.DataFrame) -> dict[str, int]:
    """The same of a table."""
    return rating_counts(what, (int((frame[Column.RATING] == rating).sum()) for rating in range(1, 6)))


def _compare(source: str, expected: Mapping[str, int], found: Mapping[str, int], check: bool) -> list[str]:
    """Sentences about counts that differ from the published ones; an error if they are to be checked."""
    wrong = [
        f"{found[what]:,} {what} where the published files have {number:,}"
        for what, number in expected.items()
        if found[what] != number
    ]
    if wrong and check:
        more = f" (and {len(wrong) - 3} more counts differ)" if len(wrong) > 3 else ""
        raise InputError(
            f"{source} has {', '.join(wrong[:3])}{more}; use the complete files, or pass --no-check for other ones"
        )
    return [f"{source} has {sentence}" for sentence in wrong]


def _find(folder: Path, name: str, below: Iterable[str]) -> Path:
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}; name the folder that holds {name}")
    for file in (folder / name, *(folder / part / name for part in below)):
        if file.is_file():
            return file
    raise InputError(f"{folder} has no file {name}; name the folder that holds it")
