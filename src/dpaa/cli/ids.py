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
    """Parse the ids of a call, in the type of the model's own.

    Parameters
    ----------
    given : words of the call: ids separated by commas, or `@FILE`; `@@at` is the id `@at`
    known : the ids of the model
    what : user or item

    Returns
    -------
    (n,) ids; text that is no integer, where the model's ids are integers, is an error
    """
    import polars as pl

    words: list[str] = []
    for word in given:
        if word.startswith("@") and not word.startswith("@@"):
            words += _read_file(Path(word[1:]), what)
        else:
            words += [part[1:] if part.startswith("@@") else part for part in word.split(",")]
    ids = pl.Series(f"{what}_id", [word.encode("utf-8", "replace").decode() for word in words], dtype=pl.String)
    if known.dtype == pl.String:
        return ids
    numbers = ids.cast(known.dtype, strict=False)
    if numbers.has_nulls():
        wrong = ids.filter(numbers.is_null())[0]
        raise InputError(
            f"the model's {what} ids are integers (such as {known[0]}), but {wrong!r} is not; give integers"
        )
    return numbers


def _read_file(file: Path, what: str) -> list[str]:
    """The ids of a table's column of them; of any other file the lines that are not blank."""
    import polars as pl

    from dpaa.data._values import Wanted, read_frame
    from dpaa.data.inputs import open_table
    from dpaa.data.log import find_column

    if file.suffix.lower() in TABLES:
        table = open_table(file)
        ids = read_frame(table, {"id": Wanted(find_column(table, f"{what}_id", None), "id")})["id"]
        return ids.cast(pl.String).to_list()
    words = [line for line in read_text(file, LARGEST).splitlines() if line.strip()]
    if not words:
        raise InputError(f"{file} has no {what} ids; give one id a line")
    return words
