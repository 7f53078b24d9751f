"""Tables at the door: CSV and its kin, JSON lines, Parquet, RecBole `.inter`, list form, dataframes, read the same way.

Text files come as text; what the text means is decided in `values.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import ClassVar

import polars as pl

from dpaa._io import read_bytes
from dpaa.data.columns import Column
from dpaa.data.json_lines import JsonLinesTable
from dpaa.data.parquet import MAGIC, parquet_blocks, parquet_rows, parquet_schema, read_parquet
from dpaa.data.scratch import called
from dpaa.data.separators import detect, fields
from dpaa.data.table import MEMORY_PER_ROW, Table, as_table
from dpaa.data.text_lines import check_unpacked, text_lines
from dpaa.data.text_table import TextForm, TextTable
from dpaa.errors import InputError, reason

__all__ = [
    "FORMATS",
    "ListTable",
    "ParquetTable",
    "Table",
    "TextForm",
    "TextTable",
    "as_table",
    "check_file",
    "open_table",
]
LINES_AT_ONCE = 10_000
FORMATS = ("csv", "tsv", "inter", "jsonl", "parquet", "list")
BY_ENDING = {".csv": "csv", ".tsv": "tsv", ".inter": "inter", ".parquet": "parquet"}
BY_ENDING |= {".jsonl": "jsonl", ".ndjson": "jsonl"}


def open_table(
    path: str | Path, fmt: str | None = None, form: TextForm | None = None, name: str | None = None
) -> Table:
    """The table in a file; the format is told by the ending, or by the content, unless it is given.

    `form` says how a text file is read (separator, encoding, names of the columns of one without a header line); `name`
    what messages call the file.
    """
    file, shown = Path(path), name or str(path)
    if fmt is not None and fmt not in FORMATS:
        raise InputError(f"there is no format {fmt!r}; choose one of {', '.join(FORMATS)}")
    form = form or TextForm()
    if fmt == "tsv" and form.separator is None:  # said, not told by the ending
        form = replace(form, separator="\t")
    with called(file, shown):
        check_file(file)
        fmt = fmt or _format_of(file, form)
        if fmt in ("parquet", "list", "jsonl"):
            form.refuse_for(fmt, shown)
        if fmt == "parquet":
            return ParquetTable.open(file, shown)
        if fmt == "list":
            return ListTable(shown, (Column.USER, Column.ITEM), source=file)
        if fmt == "jsonl":
            return JsonLinesTable.open(file, shown)
        table = TextTable.open(file, fmt, form)
        return replace(table, name=shown, notes=tuple(note.replace(str(file), shown) for note in table.notes))


def check_file(file: Path) -> None:
    """Refuse what is missing, a directory, a pipe or device, unreadable or empty."""
    if not read_bytes(file, 1, whole=False):
        raise InputError(f"{file} is empty; a table needs a header line and rows")


@dataclass(frozen=True, eq=False)
class ParquetTable(Table):
    """A Parquet file; rows are counted from 1, since it has no lines."""

    @classmethod
    def open(cls, path: Path, name: str) -> ParquetTable:
        """Read the footer."""
        with called(path, name), _readable(path):
            return cls(name, tuple(parquet_schema(path)), source=path)

    def read(self, columns: Sequence[str]) -> pl.DataFrame:
        """Some of the columns."""
        with self._called(), _readable(self.path):
            return read_parquet(self.path, columns)

    def blocks(self, columns: Sequence[str], rows: int) -> Iterator[pl.DataFrame]:
        """Some rows at a time."""
        with self._called(), _readable(self.path):
            yield from parquet_blocks(self.path, columns, rows)

    def memory_needed(self) -> int:
        """By the number of its rows."""
        with self._called(), _readable(self.path):
            return parquet_rows(self.path) * MEMORY_PER_ROW


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(
            f"{path} is not a readable Parquet file ({reason(error)}); write it again or pass --format"
        ) from error


@dataclass(frozen=True, eq=False)
class ListTable(Table):
    """List form: one line per user, `user item item …`, no header."""

    typed: ClassVar[bool] = False

    def read(self, columns: Sequence[str]) -> pl.DataFrame:
        """User and item of every pair, as text; a user without items has no pair."""
        schema = {Column.USER: pl.String(), Column.ITEM: pl.List(pl.String)}
        parts, words = [pl.DataFrame(schema=schema).explode(Column.ITEM)], self.words()
        with self._called():
            while block := list(islice(words, LINES_AT_ONCE)):  # Python's own text takes ten times a column's room
                lines = pl.DataFrame([[line[0] for line in block], [line[1:] for line in block]], schema=schema)
                parts.append(lines.filter(pl.col(Column.ITEM).list.len() > 0).explode(Column.ITEM))
        return pl.concat(parts).select(columns)

    def words(self) -> Iterator[list[str]]:
        """The words of every line that is not blank."""
        with self._called():
            check_unpacked(self.path)
            yield from (words for line in text_lines(self.path) if (words := line.split()))

    def place(self, row: int) -> str:
        """Pairs are counted from 1."""
        return f"pair {row + 1:,} of {self.name}"


def ending_of(name: str) -> str:
    """The last ending of a name, the one before it where that is `.gz`; in small letters."""
    endings = [ending.lower() for ending in Path(name).suffixes]
    return endings[-2] if endings[-1:] == [".gz"] and len(endings) > 1 else (endings or [""])[-1]


def _format_of(file: Path, form: TextForm) -> str:
    """By the ending; else by the content."""
    ending = ending_of(file.name)
    if ending in BY_ENDING:
        return BY_ENDING[ending]
    if form.told:
        return "csv"
    if ending != ".txt" and read_bytes(file, 4, whole=False)[:4] == MAGIC:
        return "parquet"
    try:
        first = next((line for line in text_lines(file) if line.strip()), "")
    except InputError:
        if ending == ".txt":
            raise
        first = ""
    if ending == ".item" and ":token" in first:  # what RecBole knows of items; MovieLens has other files of this ending
        return "inter"
    if found := _by_first_line(first):
        return found
    if ending != ".txt":
        raise InputError(
            f"the ending of {file} does not tell its format; pass --format with one of {', '.join(FORMATS)}"
        )
    if "," in first and len(first.split()) == 1:
        raise InputError(f"{file} has no tabs or spaces but commas in its first line; pass --format csv")
    return "list"


def _by_first_line(line: str) -> str | None:
    """A JSON object, or words between separators; a comma alone may stand in anything."""
    if line.lstrip().startswith("{"):
        return "jsonl"
    if "\t" in line:
        return "tsv"
    separator = detect(line, ",")
    return "csv" if separator != "," and len(fields(line, separator)) > 1 else None
