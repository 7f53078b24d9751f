"""A known dataset has known counts: compare what was found with them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from dpaa.errors import InputError


def compare(source: str, expected: Mapping[str, int], found: Mapping[str, int], check: bool) -> list[str]:
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


def histogram(ratings: pl.Series, what: str) -> dict[str, int]:
    """How often each rating from 1 to 5 occurs, by its name."""
    return {f"{what} ratings of {rating}": int((ratings == rating).sum()) for rating in range(1, 6)}


def find_file(folder: Path, name: str, *below: str) -> Path:
    """A file of a folder, or of a folder in it."""
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}; name the folder that holds {name}")
    for place in (folder, *(folder / part for part in below)):
        if (place / name).is_file():
            return place / name
    raise InputError(f"{folder} has no file {name}; name the folder that holds it")
