"""Tables at the door: CSV, TSV, Parquet, RecBole `.inter`, list form and dataframes, read the same way.

A table knows its columns, reads some of them, and can say where a row is: "line 7 of clicks.csv". Text files come as
text; what the text means is decided in `log.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from dpaa.data.columns import Column
from dpaa.data.parquet import absolute, panics_unseen, parquet_schema, read_parquet
from dpaa.data.text_lines import check_rows, check_unpacked, rows, text_lines
from dpaa.errors import InputError, reason
from dpaa.files import read_bytes

LINES_AT_ONCE = 10_000
FORMATS = ("csv", "tsv", "inter", "parquet", "list")
_BY_ENDING = {".csv": "csv", ".tsv": "tsv", ".inter": "inter", ".parquet": "parquet"}


@dataclass(frozen=True, eq=False)
class Table(ABC):
    """Named columns of rows, wherever they come from."""

    name: str
    """What messages call the table; of a file, its path."""
    columns: tuple[str, ...]
    typed: ClassVar[bool] = True
    """Whether columns have types; in a text file every column is text."""

    @property
    def path(self) -> Path:
        """The file."""
        return Path(self.name)

    @abstractmethod
    def read(self, columns: Sequence[str]) -> pl.DataFrame:
        """Some of the columns."""

    def place(self, row: int) -> str:
        """Where a row (from 0) is, in a user's words."""
        return f"row {row + 1:,} of {self.name}"


def open_table(path: str | Path, fmt: str | None = None) -> Table:
    """The table in a file; the format is told by the ending (`.txt`: by the content) unless it is given."""
    file = Path(path)
    if fmt is not None and fmt not in FORMATS:
        raise InputError(f"there is no format {fmt!r}; choose one of {', '.join(FORMATS)}")
    check_file(file)
    fmt = fmt or _format_of(file)
    if fmt == "parquet":
        return ParquetTable.open(file)
    if fmt == "list":
        return ListTable(str(file), (Column.USER, Column.ITEM))
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
    return FrameTable(name, tuple(frame.columns), frame)


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
class FrameTable(Table):
    """A dataframe in memory."""

    frame: pl.DataFrame

    def read(self, columns: Sequence[str]) -> pl.DataFrame:
        """Some of the columns."""
        return self.frame.select(columns)

    def place(self, row: int) -> str:
        """Rows are counted from 0, as dataframes do."""
        return f"row {row} of {self.name}"


@dataclass(frozen=True, eq=False)
class ParquetTable(Table):
    """A Parquet file; rows are counted from 1, since it has no lines."""

    @classmethod
    def open(cls, path: Path) -> ParquetTable:
        """Read the footer."""
        with _readable(path):
            return cls(str(path), tuple(parquet_schema(path)))

    def read(self, columns: Sequence[str]) -> pl.DataFrame:
        """Some of the columns."""
        with _readable(self.path):
            return read_parquet(self.path, columns)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(
            f"{path} is not a readable Parquet file ({reason(error)}); write it again or pass --format"
        ) from error


@dataclass(frozen=True, eq=False)
class TextTable(Table):
    """A CSV, TSV or RecBole `.inter` file with a header line, plain or gzipped."""

    separator: str
    header: tuple[str, ...]
    """The first line as it is; `columns` of `.inter` files are without the types (`user_id:token`)."""
    typed: ClassVar[bool] = False

    @classmethod
    def open(cls, path: Path, fmt: str) -> TextTable:
        """Read the header line."""
        separator = "," if fmt == "csv" else "\t"
        header = next((cells for _, cells in rows(path, separator) if cells), None)
        if header is None:
            raise InputError(f"{path} is empty; a table needs a header line and rows")
        columns = [name.partition(":")[0] for name in header] if fmt == "inter" else header
        twice = next((name for name in columns if columns.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"{path} has two columns named {twice!r}; rename one")
        return cls(str(path), tuple(columns), separator, tuple(header))

    def read(self, columns: Sequence[str]) -> pl.DataFrame:
        """Some of the columns, as text; blank lines are left out, rows with too few or too many fields refused."""
        check_rows(self.path, self.separator, len(self.header))
        raw = [self.header[self.columns.index(column)] for column in columns]
        try:
            quote = '"' if self.separator == "," else None
            lines = pl.scan_csv(
                absolute(self.path), separator=self.separator, quote_char=quote, infer_schema=False, glob=False
            )
            with panics_unseen():
                frame = lines.select(pl.col(raw)).collect()
            frame.columns = list(columns)
        except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            self._check_lines()
            raise InputError(f"{self.name} cannot be read ({reason(error)}); check it or pass --format") from error
        if any(frame[column].has_nulls() for column in columns):
            self._check_lines(columns)
            frame = frame.filter(~pl.all_horizontal(pl.all().is_null()))
        return frame

    def place(self, row: int) -> str:
        """Lines are counted from 1, the header included; found by a slow walk through the file."""
        filled = (line for line, cells in rows(self.path, self.separator) if cells)
        return f"line {next(islice(filled, row + 1, None)):,} of {self.name}"

    def _check_lines(self, columns: Sequence[str] = ()) -> None:
        """Name the first line with wrong quotes or another encoding, or with nothing in any of the columns."""
        wanted = [self.columns.index(column) for column in columns]
        for line, cells in rows(self.path, self.separator):
            if wanted and cells and not any(cells[place] for place in wanted):
                named = ", ".join(map(repr, columns))
                raise InputError(f"line {line:,} of {self.name} has nothing in {named}; fill it in or remove it")


@dataclass(frozen=True, eq=False)
class ListTable(Table):
    """List form: one line per user, `user item item …`, no header."""

    typed: ClassVar[bool] = False

    def read(self, columns: Sequence[str]) -> pl.DataFrame:
        """User and item of every pair, as text; a user without items has no pair."""
        schema = {Column.USER: pl.String(), Column.ITEM: pl.List(pl.String)}
        parts, words = [pl.DataFrame(schema=schema).explode(Column.ITEM)], self.words()
        while block := list(islice(words, LINES_AT_ONCE)):  # Python's own text takes ten times the room of a column's
            lines = pl.DataFrame([[line[0] for line in block], [line[1:] for line in block]], schema=schema)
            parts.append(lines.filter(pl.col(Column.ITEM).list.len() > 0).explode(Column.ITEM))
        return pl.concat(parts).select(columns)

    def words(self) -> Iterator[list[str]]:
        """The words of every line that is not blank."""
        check_unpacked(self.path)
        return (words for line in text_lines(self.path) if (words := line.split()))

    def place(self, row: int) -> str:
        """Pairs are counted from 1."""
        return f"pair {row + 1:,} of {self.name}"


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
