"""Ids given on the command line: one by one, or a file of them as @FILE."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpaa.errors import InputError
from dpaa.files import read_text

if TYPE_CHECKING:
    import polars as pl


LARGEST = 200_000_000
"""Bytes of a file of ids."""


def read_ids(given: list[str], known: pl.Series, what: str) -> pl.Series:
    """The ids in the type of the model's own; text that is no whole number where ids are integers is an error."""
    import polars as pl

    words: list[str] = []
    for word in given:
        if word.startswith("@") and not word.startswith("@@"):
            words += _read_words(Path(word[1:]), what)
        else:
            words.append(word.removeprefix("@"))  # @@at is the id @at
    try:
        ids = pl.Series(f"{what}_id", words, dtype=pl.String)
    except UnicodeEncodeError:
        wrong = next(word for word in words if any("\ud800" <= character <= "\udfff" for character in word))
        raise InputError(f"the {what} id {wrong!r} is not UTF-8 text; no log can have it: leave it out") from None
    if known.dtype == pl.String:
        return ids
    numbers = ids.cast(known.dtype, strict=False)
    if numbers.has_nulls():
        wrong = ids.filter(numbers.is_null())[0]
        raise InputError(
            f"the model's {what} ids are integers (such as {known[0]}), but {wrong!r} is not; give integers"
        )
    return numbers


def _read_words(file: Path, what: str) -> list[str]:
    """The lines of a file that are not blank."""
    try:
        words = [line for line in read_text(file, LARGEST).splitlines() if line.strip()]
    except InputError as error:
        raise InputError(
            f"cannot read the {what} ids in {file} ({str(error).partition(';')[0]}); give one id a line in UTF-8, "
            f"or write @@{file} if @{file} is an id"
        ) from None
    if not words:
        raise InputError(f"{file} has no {what} ids; give one id a line")
    return words
