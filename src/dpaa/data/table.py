"""A table: it knows its columns, reads some of them, and can say where a row is: "line 7 of clicks.csv"."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
from numpy.typing import NDArray

from dpaa._text import json_text
from dpaa.data.scratch import called
from dpaa.errors import InputError, reason

ORIGINALS_AT_ONCE = 1_000_000
MEMORY_PER_ROW, MEMORY_PER_BYTE = 170, 8
"""Bytes that preparing a log takes per row, and per byte of a file of text (measured on 20 million rows)."""
Original = tuple[str, int, str]
"""Of a row: what it is in (a file), its line or number there, and its content as it is."""


@dataclass(frozen=True)
class TornRow:
    """A piece of a file that cannot be read as a row."""

    source: str
    line: int
    kind: str
    """In a few words that are the same for all of a kind."""
    sentence: str
    """What is wrong with it, up to the remedy."""
    remedy: str
    content: str

    @property
    def place(self) -> str:
        """In a user's words."""
        return f"line {self.line:,}"


@dataclass(frozen=True, eq=False)
class Table(ABC):
    """Named columns of rows, wherever they come from."""

    name: str
    """What messages call the table; of a file, its path."""
    columns: tuple[str, ...]
    source: Path | None = field(default=None, kw_only=True)
    """The file that is read, where it is a copy of what the name says."""
    notes: tuple[str, ...] = field(default=(), kw_only=True)
    """How it is read, where that was found out and may be wrong."""
    typed: ClassVar[bool] = True
    """Whether columns have types; in a text file every column is text."""

    @property
    def path(self) -> Path:
        """The file."""
        return self.source or Path(self.name)

    @abstractmethod
    def read(self, columns: Sequence[str]) -> pl.DataFrame:
        """Some of the columns."""

    def blocks(self, columns: Sequence[str], rows: int) -> Iterator[pl.DataFrame]:
        """The same a piece of about so many rows after the other, where the file can be read so; else all at once."""
        del rows
        yield self.read(columns)

    def memory_needed(self) -> int:
        """About how many bytes preparing it all at once takes; 0 where it is in memory already."""
        return 0

    def place(self, row: int) -> str:
        """Where a row (from 0) is, in a user's words."""
        return f"row {row + 1:,} of {self.name}"

    def without_torn(self, columns: Sequence[str]) -> tuple[Table, list[TornRow]]:
        """The same without what cannot be read as rows with these columns, and that."""
        del columns
        return self, []

    def originals(self, rows: NDArray[Any], columns: Sequence[str]) -> Iterator[Original]:
        """Some rows, ascending, as they are in the file; as JSON of these columns where it is no text."""
        first = 0
        for block in self.blocks(columns, ORIGINALS_AT_ONCE):
            inside = rows[(rows >= first) & (rows < first + block.height)]
            for row, content in zip(inside.tolist(), block[inside - first].iter_rows(named=True), strict=True):
                plain = {name: _plain(value) for name, value in content.items()}
                yield self.name, row + 1, json_text(plain, indent=None)
            first += block.height

    def _called(self) -> AbstractContextManager[None]:
        """Sentences name the table, not the copy that is read."""
        return called(self.path, self.name)


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | None) else str(value)


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
