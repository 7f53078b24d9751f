"""Ids given on the command line: one or several separated by commas, or a file of them as @FILE."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpaa._io import read_text
from dpaa.errors import InputError

if TYPE_CHECKING:
    import polars as pl


TABLES = (".csv", ".tsv", ".parquet", ".inter", ".jsonl")
LARGEST = 200_000_000
"""Bytes of a file of ids."""


def read_ids(given: list[str], known: pl.Series, what: str) -> pl.Series:
    """The ids in the type of the model's own; text that is no whole number where ids are integers is an error.

    Ids with a comma in them come from a file.
    """
    import polars as pl

    words: list[str] = []
    for word in (part for whole in given for part in ([whole] if _is_file(whole) else whole.split(","))):
        if _is_file(word):
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


def _is_file(word: str) -> bool:
    return word.startswith("@") and not word.startswith("@@")


def _read_words(file: Path, what: str) -> list[str]:
    """The ids of a table that has a column of them; of any other file the lines that are not blank."""
    if file.suffix.lower() in TABLES and (words := _read_column(file, what)) is not None:
        return words
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


def _read_column(file: Path, what: str) -> list[str] | None:
    """The ids in a table's column of users or items; None where it has none, one id a line perhaps."""
    import polars as pl

    from dpaa.data._values import Wanted, read_frame
    from dpaa.data.inputs import open_table
    from dpaa.data.log import KNOWN_NAMES

    try:
        table = open_table(file)
    except InputError:
        if file.suffix.lower() == ".parquet":
            raise
        return None
    by_lower = {column.strip().lower(): column for column in reversed(table.columns)}
    column = next((by_lower[name] for name in KNOWN_NAMES[f"{what}_id"] if name in by_lower), None)
    if column is None:
        return None
    try:
        ids = read_frame(table, {"id": Wanted(column, "id")})["id"]
    except InputError as error:
        if "has no rows" in str(error):
            raise InputError(f"{file} has no {what} ids; give at least one") from None
        raise
    return ids.cast(pl.String).to_list()
