"""Text files with a row per line: CSV, TSV, RecBole `.inter` and their kin, plain or gzipped.

What polars cannot read as it is (another encoding than UTF-8, `::` between fields, torn rows) is copied first, line by
line, so that lines keep their numbers.
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpaa.data.parquet import absolute, panics_unseen
from dpaa.data.scratch import called, scratch_file
from dpaa.data.separators import QUOTING, detect, in_words
from dpaa.data.table import MEMORY_PER_BYTE, Original, Table, TornRow
from dpaa.data.text_lines import LONGEST_LINE, Wrong, check_rows, opened, raw_lines, rows, rows_or_faults, text_lines
from dpaa.errors import InputError, reason

UNIT = "\x1f"
"""Stands for a separator of several characters in a copy: ASCII's own separator of fields."""


@dataclass(frozen=True)
class TextForm:
    """How a text file is to be read, as far as somebody said."""

    separator: str | None = None
    """Between fields; None = told by the ending and the first line."""
    columns: tuple[str, ...] | None = None
    """Names of the columns of a file without a header line."""
    encoding: str | None = None
    """None = UTF-8."""

    def __post_init__(self) -> None:
        if self.encoding is not None:
            try:
                codecs.lookup(self.encoding).encode("a")
            except (LookupError, TypeError, ValueError):
                raise InputError(
                    f"there is no encoding {self.encoding!r}; name one such as latin-1, cp1252 or utf-16"
                ) from None
        if self.columns is not None:
            twice = next((name for name in self.columns if self.columns.count(name) > 1), None)
            if twice is not None or not all(self.columns):
                raise InputError(f"--columns needs a name for every column, each once, got {','.join(self.columns)!r}")

    @property
    def told(self) -> bool:
        """Whether somebody said anything."""
        return self != TextForm()

    def refuse_for(self, fmt: str, name: str) -> None:
        """Refuse to read another format as text."""
        if self.told:
            raise InputError(f"{name} is read as {fmt}: separator, columns and encoding are of text; leave them out")


@dataclass(frozen=True, eq=False)
class TextTable(Table):
    """A file with a line per row, and a header line unless the columns were given."""

    separator: str
    header: tuple[str, ...]
    """The first line as it is; `columns` of `.inter` files are without the types (`user_id:token`)."""
    has_header: bool = True
    written: str = ","
    """The separator in the file itself."""
    lines: NDArray[np.int64] | None = None
    """The line of every row, where the copy that is read lacks some; None = as they come."""
    typed: ClassVar[bool] = False

    @classmethod
    def open(cls, path: Path, fmt: str, form: TextForm | None = None) -> TextTable:
        """Read the header line."""
        form = form or TextForm()
        source = path if form.encoding is None else _decoded(path, form.encoding)
        with called(source, str(path)):
            first = next((line for line in text_lines(source) if line.strip()), "")
            usual = "," if fmt == "csv" else "\t"
            n_columns = None if form.columns is None else len(form.columns)
            separator = form.separator or (usual if fmt == "inter" else detect(first, usual, n_columns))
            told = separator == usual or form.separator is not None
            notes = () if told else (f"{path}: its fields are taken to be separated by {in_words(separator)}",)
            written = separator
            if len(separator) > 1:
                source, separator = _with_units(source, separator), UNIT
            header = form.columns or next((tuple(cells) for _, cells in rows(source, separator) if cells), None)
        if header is None:
            raise InputError(f"{path} is empty; a table needs a header line and rows")
        columns = [name.partition(":")[0] for name in header] if fmt == "inter" else list(header)
        twice = next((name for name in columns if columns.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"{path} has two columns named {twice!r}; rename one")
        named = form.columns is None
        return cls(
            str(path), tuple(columns), separator, tuple(header), named, written=written, source=source, notes=notes
        )

    def read(self, columns: Sequence[str]) -> pl.DataFrame:
        """Some of the columns, as text; blank lines are left out, rows with too few or too many fields refused."""
        with self._called():
            with self._in_words():
                frame = self._scanned(columns).collect()
            if _has_nothing(frame):
                self._check_lines(columns)
            return _without_blank_lines(frame)

    def blocks(self, columns: Sequence[str], rows: int) -> Iterator[pl.DataFrame]:
        """The same, some rows at a time."""
        with self._called():
            with self._in_words():
                batches = iter(self._scanned(columns).collect_batches(chunk_size=rows, maintain_order=True))
            looked = False
            while True:
                with self._in_words():
                    frame = next(batches, None)
                if frame is None:
                    return
                if not looked and _has_nothing(frame):
                    self._check_lines(columns)  # of the whole file, hence once
                    looked = True
                yield _without_blank_lines(frame)

    def memory_needed(self) -> int:
        """By its size."""
        return MEMORY_PER_BYTE * self.path.stat().st_size

    def _scanned(self, columns: Sequence[str]) -> pl.LazyFrame:
        check_rows(self.path, self.separator, len(self.header))
        raw = [self.header[self.columns.index(column)] for column in columns]
        lines = pl.scan_csv(
            absolute(self.path),
            separator=self.separator,
            quote_char='"' if self.separator in QUOTING else None,
            infer_schema=False,
            glob=False,
            has_header=self.has_header,
            new_columns=None if self.has_header else list(self.header),
        )
        return lines.select(pl.col(theirs).alias(ours) for theirs, ours in zip(raw, columns, strict=True))

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        try:
            with panics_unseen():
                yield
        except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            self._check_lines()
            raise InputError(f"{self.name} cannot be read ({reason(error)}); check it or pass --format") from error

    def place(self, row: int) -> str:
        """Lines are counted from 1, the header included; found by a slow walk through the file."""
        return f"line {self._line(row):,} of {self.name}"

    def _line(self, row: int) -> int:
        if self.lines is not None:
            return int(self.lines[row])
        filled = (line for line, cells in rows(self.path, self.separator) if cells)
        return next(islice(filled, row + self.has_header, None))

    def without_torn(self, columns: Sequence[str]) -> tuple[Table, list[TornRow]]:
        """Every line is read apart; those that are rows are copied."""
        wanted = [self.columns.index(column) for column in columns]
        torn: list[TornRow] = []
        kept: list[int] = []

        def write(stream: BinaryIO) -> None:
            for line, text, cells, found in rows_or_faults(self.path, self.separator):
                wrong = found or self._wrong(cells, wanted)
                if wrong is not None:
                    sentence = f"line {line:,} of {self.name} {wrong.says}"
                    torn.append(TornRow(self.name, line, wrong.kind, sentence, wrong.remedy, self._as_written(text)))
                elif cells:
                    kept.append(line)
                    stream.write((text if text.endswith("\n") else f"{text}\n").encode())

        with self._called():
            copy = scratch_file(self.name, write)
        lines = np.array(kept[self.has_header :], dtype=np.int64)
        return (replace(self, source=copy, lines=lines), torn) if torn else (self, [])

    def _wrong(self, cells: list[str], wanted: list[int]) -> Wrong | None:
        """What is wrong with the fields of a row; a blank line is no row."""
        if not cells:
            return None
        n, expected = len(cells), len(self.header)
        if n != expected:
            says = f"has {n} field{'s' * (n != 1)} where the header has {expected}"
            remedy = "correct the line, or the separator with --format"
            return Wrong(f"another number of fields than the header's {expected}", says, remedy)
        if not any(cells[place] for place in wanted):
            named = ", ".join(repr(self.columns[place]) for place in wanted)
            return Wrong(f"nothing in {named}", f"has nothing in {named}", "fill it in or remove it")
        return None

    def originals(self, rows: NDArray[Any], columns: Sequence[str]) -> Iterator[Original]:
        """The lines themselves."""
        del columns
        wanted, place = set(rows.tolist()), -1 - self.has_header
        for line, text, cells, _ in rows_or_faults(self.path, self.separator):
            place += bool(cells)
            if cells and place in wanted:
                yield self.name, line if self.lines is None else int(self.lines[place]), self._as_written(text)

    def _as_written(self, text: str) -> str:
        return text.rstrip("\r\n").replace(UNIT, self.written) if self.separator == UNIT else text.rstrip("\r\n")

    def _check_lines(self, columns: Sequence[str] = ()) -> None:
        """Name the first line with wrong quotes or another encoding, or with nothing in any of the columns."""
        wanted = [self.columns.index(column) for column in columns]
        for line, cells in rows(self.path, self.separator):
            if wanted and cells and not any(cells[place] for place in wanted):
                named = ", ".join(map(repr, columns))
                raise InputError(f"line {line:,} of {self.name} has nothing in {named}; fill it in or remove it")


def _has_nothing(frame: pl.DataFrame) -> bool:
    return any(frame[column].has_nulls() for column in frame.columns)


def _without_blank_lines(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.filter(~pl.all_horizontal(pl.all().is_null())) if _has_nothing(frame) else frame


def _decoded(path: Path, encoding: str) -> Path:
    """A copy in UTF-8."""

    def write(stream: BinaryIO) -> None:
        number = 0
        try:
            for line in _lines(path, encoding):
                stream.write(line.encode())
                number += 1
        except UnicodeError as error:
            raise InputError(
                f"line {number + 1:,} of {path} is not {encoding} text ({reason(error)}); name another --encoding"
            ) from None

    return scratch_file(str(path), write)


def _lines(path: Path, encoding: str) -> Iterator[str]:
    """Lines of text; where a line's end is the usual byte, each is decoded apart."""
    if "\n".encode(encoding) == b"\n":
        yield from (line.decode(encoding) for line in raw_lines(path))
        return
    with opened(path) as raw:
        text = io.TextIOWrapper(raw, encoding, newline="")
        while line := text.readline(LONGEST_LINE + 1):
            yield line


def _with_units(path: Path, separator: str) -> Path:
    """A copy with one character between fields."""

    def write(stream: BinaryIO) -> None:
        for line in text_lines(path):
            stream.write(line.replace(separator, UNIT).encode())

    return scratch_file(str(path), write)
