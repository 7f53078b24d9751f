"""Tables at the door: CSV, TSV, Parquet, RecBole `.inter`, list form and dataframes, read the same way.

A table knows its columns, reads some of them, and can say where a row is: "line 7 of clicks.csv". Text files come as
text; what the text means is decided in `log.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import polars as pl

from dpaa.data.columns import Column
from dpaa.data.parquet import absolute, panics_unseen, parquet_schema, read_parquet
from dpaa.data.text_lines import check_rows, check_unpacked, rows, text_lines
from dpaa.errors import InputError, reason
from dpaa.files import read_bytes

LINES_AT_ONCE = 10_000
FORMATS = ("csv", "tsv", "inter", "parquet", "list")
_BY_ENDING = {".csv": "csv", ".tsv": "tsv", ".inter": "inter", ".parquet": "parquet"}


class Table(Protocol):
    """Named columns of rows, wherever they come from."""

    @property
    def name(self) -> str:
        """What messages call the table."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""

    @property
    def typed(self) -> bool:
        """Whether columns have types; in a text file every column is text."""

    def read(self, columns: Sequence[str]) -> pl.DataFrame:
        """Some of the columns."""

    def place(self, row: int) -> str:
        """Where a row (from 0) is, in a user's words."""


def open_table(path: str | Path, fmt: str | None = None) -> Table:
    """The table in a file; the format is told by the ending (`.txt`: by the content) unless it is given."""
    file = Path(path)
    if fmt is not None and fmt not in FORMATS:
        raise InputError(f"there is no format {fmt!r}; choose one of {', '.join(FORMATS)}")
    check_file(file)
    fmt = fmt or _format_of(file)
    if fmt == "parquet":
        return ParquetTable(file)
    if fmt == "list":
        return ListTable(file)
    return TextTable.open(file, fmt)


def check_file(file: Path) -> None:
    """Refuse what is missing, a directory, a pipe or device, unreadable or empty."""
    if not read_bytes(file, 1, whole=False):
        raise InputError(f"{file} is empty; a table needs a header line and rows")


def as_table(frame: Any, name: str) -> Table:
    """A dataframe of any library (polars, pandas, pyarrow, a dict of columns) as a table."""
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if not isinstance(frame, pl.DataFrame):
        try:
            frame = _from_pandas(frame) if type(frame).__module__.startswith("pandas") else pl.DataFrame(frame)
        except (TypeError, ValueError, OverflowError, ImportError, pl.exceptions.PolarsError) as error:
            raise InputError(f"{name} is not a dataframe that polars can read ({reason(error)})") from error
    return FrameTable(name, frame)


def _from_pandas(frame: Any) -> pl.DataFrame:
    """Column by column, since the direct way needs pyarrow; what pandas calls missing is empty."""
    columns = {}
    for name in frame.columns:
        values = frame[name].to_numpy()
        if values.dtype.kind not in "iufM":
            values = frame[name].astype(object).where(frame[name].notna(), None).tolist()
        columns[str(name)] = pl.Series(values)
    return pl.DataFrame(columns)


@dataclass(frozen=True, eq=False)
class FrameTable:
    """A dataframe in memory."""

    name: str
    frame: pl.DataFrame
    typed: bool = True

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.frame.columns)

    def read(self, columns: Sequence[str]) -> pl.DataFrame:
        """Some of the columns."""
        return self.frame.select(columns)

    def place(self, row: int) -> str:
        """Rows are counted from 0, as dataframes do."""
        return f"row {row} of {self.name}"


@dataclass(frozen=True)
class ParquetTable:
    """A Parquet file."""

    path: Path
    typed: bool = True

    @property
    def name(self) -> str:
        """The path."""
        return str(self.path)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, from the footer of the file."""
        try:
            return tuple(parquet_schema(self.path))
        except (OSError, pl.exceptions.PolarsError) as error:
            raise self._unreadable(error) from error

    def read(self, columns: Sequence[str]) -> pl.DataFrame:
        """Some of the columns."""
        try:
            return read_parquet(self.path, columns)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise self._unreadable(error) from error

    def place(self, row: int) -> str:
        """Rows are counted from 1: a Parquet file has no lines."""
        return f"row {row + 1:,} of {self.path}"

    def _unreadable(self, error: Exception) -> InputError:
        return InputError(
            f"{self.path} is not a readable Parquet file ({reason(error)}); write it again or pass --format"
        )


@dataclass(frozen=True)
class TextTable:
    """A CSV, TSV or RecBole `.inter` file with a header line, plain or gzipped."""

    path: Path
    separator: str
    header: tuple[str, ...] = ()
    """The first line as it is."""
    columns: tuple[str, ...] = ()
    """The header; in `.inter` files without the types (`user_id:token`)."""
    typed: bool = False

    @classmethod
    def open(cls, path: Path, fmt: str) -> TextTable:
        """Read the header line."""
        separator = "," if fmt == "csv" else "\t"
        header = next((cells for _, cells in rows(path, separator) if cells), None)
        if header is None:
            raise InputError(f"{path} is empty; a table needs a header line and rows")
        columns = [name.partition(":")[0] for name in header] if fmt == "inter" else header
        table = cls(path, separator, tuple(header), tuple(columns))
        twice = next((name for name in table.columns if table.columns.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"{path} has two columns named {twice!r}; rename one")
        return table

    @property
    def name(self) -> str:
        """The path."""
        return str(self.path)

    def read(self, columns: Sequence[str]) -> pl.DataFrame:
        """Some of the columns, as text; blank lines are left out, rows with too few or too many fields refused."""
        check_rows(self.path, self.separator, len(self.header))
        raw = [self.header[self.columns.index(column)] for column in columns]
        try:
            with panics_unseen():
                frame = (
                    pl.scan_csv(
                        absolute(self.path),
                        separator=self.separator,
                        quote_char='"' if self.separator == "," else None,
                        infer_schema=False,
                        glob=False,
                    )
                    .select(pl.col(name).alias(column) for name, column in zip(raw, columns, strict=True))
                    .collect()
                )
        except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            self._check_lines()
            raise InputError(f"{self.path} cannot be read ({reason(error)}); check it or pass --format") from error
        if any(frame[column].has_nulls() for column in columns):
            self._check_lines(columns)
            frame = frame.filter(~pl.all_horizontal(pl.all().is_null()))
        return frame

    def place(self, row: int) -> str:
        """Lines are counted from 1, the header included; found by a slow walk through the file."""
        filled = (line for line, cells in rows(self.path, self.separator) if cells)
        for _ in range(row + 1):
            next(filled)
        return f"line {next(filled):,} of {self.path}"

    def _check_lines(self, columns: Sequence[str] = ()) -> None:
        """Name the first line with wrong quotes or another encoding, or with nothing in any of the columns."""
        wanted = [self.columns.index(column) for column in columns]
        for line, cells in rows(self.path, self.separator):
            if wanted and cells and not any(cells[place] for place in wanted):
                named = ", ".join(map(repr, columns))
                raise InputError(f"line {line:,} of {self.path} has nothing in {named}; fill it in or remove it")


@dataclass(frozen=True)
class ListTable:
    """List form: one line per user, `user item item …`, no header."""

    path: Path
    typed: bool = False
    columns: tuple[str, ...] = (Column.USER, Column.ITEM)

    @property
    def name(self) -> str:
        """The path."""
        return str(self.path)

    def read(self, columns: Sequence[str]) -> pl.DataFrame:
        """User and item of every pair, as text; a user without items has no pair."""
        schema = {Column.USER: pl.String(), Column.ITEM: pl.List(pl.String)}
        parts = [pl.DataFrame(schema=schema).explode(Column.ITEM)]
        for block in batched(self.words(), LINES_AT_ONCE):  # Python's own text takes ten times the room of a column's
            lines = pl.DataFrame([[line[0] for line in block], [line[1:] for line in block]], schema=schema)
            parts.append(lines.filter(pl.col(Column.ITEM).list.len() > 0).explode(Column.ITEM))
        return pl.concat(parts).select(columns)

    def words(self) -> Iterator[list[str]]:
        """The words of every line that is not blank."""
        check_unpacked(self.path)
        return (words for line in text_lines(self.path) if (words := line.split()))

    def place(self, row: int) -> str:
        """Pairs are counted from 1."""
        return f"pair {row + 1:,} of {self.path}"


def _format_of(file: Path) -> str:
    endings = [ending.lower() for ending in file.suffixes]
    ending = endings[-2] if endings[-1:] == [".gz"] and len(endings) > 1 else (endings or [""])[-1]
    if ending in _BY_ENDING:
        return _BY_ENDING[ending]
    if ending != ".txt":
        raise InputError(
            f"the ending of {file} does not tell its format; pass --format with one of {', '.join(FORMATS)}"
        )
    first = next((line for line in text_lines(file) if line.strip()), "")
    if "\t" in first:
        return "tsv"
    if "," in first and len(first.split()) == 1:
        raise InputError(f"{file} has no tabs or spaces but commas in its first line; pass --format csv")
    return "list"


def batched(lines: Iterable[list[str]], size: int) -> Iterator[list[list[str]]]:
    """Lists of so many elements (`itertools.batched` comes with Python 3.12)."""
    source = iter(lines)
    while block := list(islice(source, size)):
        yield block
