"""Ids and pairs that a call names: ids separated by commas, a file of them as @FILE, a file of pairs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpaa._io import read_text
from dpaa.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from dpaa.data.log import ColumnNames
    from dpaa.runs.model import Model

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


def read_pairs(file: Path, model: Model, names: ColumnNames, known_users: bool = True) -> pl.DataFrame:
    """Read `user_id, item_id` of a file, in the types of the model's ids.

    Parameters
    ----------
    file : any log
    model : whose ids they are
    names : of the columns in the file
    known_users : whether users are the model's too

    Returns
    -------
    the pairs
    """
    import polars as pl

    from dpaa.data.columns import Column
    from dpaa.data.ids import is_text, kind
    from dpaa.data.inputs import open_table
    from dpaa.data.log import Reading, read_log

    log = read_log(open_table(file), names, reading=Reading(may_drop=False))
    table = log.frame.select(Column.USER, Column.ITEM)
    known = {Column.ITEM: model.item_ids} | ({Column.USER: model.user_ids} if known_users else {})
    for column, ids in known.items():
        if is_text(ids) and not log.typed:  # whole numbers of a text file may be text as well
            table = table.with_columns(pl.col(column).cast(pl.String))
        given = table[column]
        if is_text(given) != is_text(ids):
            raise InputError(
                f"{file} has {column}s that are {kind(given)} such as {given[0]!r}, the model {kind(ids)} such as "
                f"{ids[0]!r}; use the ids of the training log"
            )
    return table
