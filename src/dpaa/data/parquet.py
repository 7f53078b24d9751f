"""Parquet files of strangers: their sizes are added up before polars is asked to read them.

A few kilobytes may claim billions of rows, or unpack to gigabytes, and a damaged length makes the reader ask for more
memory than there is, which ends the process.  So the footer and the header of every page that would be read are walked
through first (Thrift's compact protocol; nothing is unpacked): the rows, and the bytes the pages unpack to, must be in
proportion to the file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from os import SEEK_END
from pathlib import Path
from threading import RLock
from typing import Any, BinaryIO

import polars as pl

from dpaa.errors import InputError
from dpaa.files import check_text, open_regular
from dpaa.kernels.memory import memory_at_hand

MAGIC = b"PAR1"
LARGEST_FOOTER = 64_000_000
LARGEST_PAGE_HEADER = 1_000_000
"""Bytes; a header has statistics of the page, two values of the column."""
ROWS_AT_LEAST, ROWS_PER_BYTE = 1_000_000, 20
"""Rows that any file may have, and further ones per byte: a pair of ids takes more than that."""
BYTES_AT_LEAST, BYTES_PER_BYTE = 64_000_000, 50
"""The same for unpacked bytes."""
BYTES_PER_VALUE = 16
"""What a value takes in memory at least: a number half of it, a short text the whole."""
DEEPEST = 16


def parquet_schema(file: Path) -> dict[str, pl.DataType]:
    """Names and types of the columns, from the footer of the file."""
    with _as_polars_error(file):
        _footer(file)
        return dict(pl.scan_parquet(absolute(file), glob=False).collect_schema())


def read_parquet(file: Path, columns: Sequence[str]) -> pl.DataFrame:
    """Some of the columns of one file; one whose content would be out of proportion is refused before it is read.

    A damaged file raises an error of polars, whose words are for whoever knows what the file is for.
    """
    with _as_polars_error(file):
        check_size(file, columns)
        return pl.read_parquet(absolute(file), columns=list(columns), glob=False)


def check_size(file: Path, columns: Sequence[str] | None = None) -> None:
    """Refuse a file of more rows or bytes than fit its size, or than memory holds; all columns without argument."""
    with open_regular(file) as opened:
        footer = _read_footer(opened)
        unpacked = sum(
            _chunk_bytes(opened, chunk, footer.size)
            for chunk in footer.chunks
            if columns is None or chunk.column in columns
        )
    n_columns = len({chunk.column for chunk in footer.chunks} if columns is None else set(columns))
    if footer.rows > ROWS_AT_LEAST + ROWS_PER_BYTE * footer.size:
        raise InputError(f"{file} claims {footer.rows:,} rows in {footer.size:,} bytes; write it again")
    if unpacked > BYTES_AT_LEAST + BYTES_PER_BYTE * footer.size:
        raise InputError(
            f"{file} would unpack from {footer.size:,} bytes to {unpacked:,}, more than {BYTES_PER_BYTE} times as "
            "many; write it again without compression if it is sound"
        )
    if max(footer.rows * n_columns * BYTES_PER_VALUE, 2 * unpacked) > memory_at_hand():
        raise InputError(f"{file} claims {footer.rows:,} rows, more than the memory at hand; use a smaller file")


def absolute(file: Path) -> Path:
    """As polars takes it: a leading `~` or, in text, a `*` or `[` would mean something else to it."""
    place = file.absolute()
    check_text(place)
    return place


@contextmanager
def panics_unseen() -> Iterator[None]:
    """Polars tells of a panic on stderr before it raises it, past Python: what it tells goes nowhere meanwhile.

    One thread at a time, since there is one stderr.
    """
    with _one_stderr, ExitStack() as hold:
        with suppress(OSError):  # there is no stderr
            kept = os.dup(2)
            hold.callback(os.close, kept)
            nowhere = os.open(os.devnull, os.O_WRONLY)
            hold.callback(os.close, nowhere)
            hold.callback(os.dup2, kept, 2)
            os.dup2(nowhere, 2)
        yield


_one_stderr = RLock()


@contextmanager
def _as_polars_error(file: Path) -> Iterator[None]:
    """A damaged file may make polars panic, which is no `Exception`, or end our own walk: the same error for all."""
    if not file.exists():
        raise FileNotFoundError(str(file))
    try:
        with panics_unseen():
            yield
    except pl.exceptions.PanicException as error:
        raise pl.exceptions.ComputeError(f"damaged: {error}") from None
    except _DamagedError as error:
        raise pl.exceptions.ComputeError(str(error)) from None


class _DamagedError(Exception):
    """The bytes are not those of a Parquet file."""


@dataclass(frozen=True)
class _Chunk:
    """The values of one column in one group of rows."""

    column: str
    start: int
    packed: int
    values: int


@dataclass(frozen=True)
class _Footer:
    size: int
    """Of the whole file."""
    rows: int
    chunks: list[_Chunk] = field(default_factory=list)


def _footer(file: Path) -> _Footer:
    with open_regular(file) as opened:
        return _read_footer(opened)


def _read_footer(opened: BinaryIO) -> _Footer:
    size = opened.seek(0, SEEK_END)
    if size < 12:
        raise _DamagedError("too short for a Parquet file")
    opened.seek(size - 8)
    end = opened.read(8)
    length = int.from_bytes(end[:4], "little")
    if end[4:] != MAGIC or length > min(size - 8, LARGEST_FOOTER):
        raise _DamagedError("the end is not that of a Parquet file")
    opened.seek(size - 8 - length)
    found = _Compact(opened.read(length)).struct()
    rows, groups = _int(found, 3), _list(found, 4)
    chunks = []
    for group in groups:
        group_rows = _int(group, 3)
        for column in _list(group, 1):
            about = _struct(column, 3)
            path = _list(about, 3)
            places = [place for place in (about.get(9), about.get(11)) if isinstance(place, int) and place > 0]
            start = min(places, default=0)
            values = _int(about, 5)
            if len(path) == 1 and values != group_rows:
                raise _DamagedError("a column has another number of values than its group has rows")
            name = path[0].decode("utf-8", errors="replace") if path and isinstance(path[0], bytes) else ""
            chunks.append(_Chunk(name, start, _int(about, 7), values))
    if rows < 0 or rows != sum(_int(group, 3) for group in groups):
        raise _DamagedError("the number of rows is not the sum of the groups'")
    return _Footer(size, rows, chunks)


def _chunk_bytes(opened: BinaryIO, chunk: _Chunk, size: int) -> int:
    """What the pages of a chunk unpack to, by their own headers."""
    place, end, unpacked, values = chunk.start, chunk.start + chunk.packed, 0, 0
    if chunk.packed < 0 or not 0 < chunk.start <= end <= size:
        raise _DamagedError("a column lies outside of the file")
    while place < end:
        opened.seek(place)
        header = _Compact(opened.read(min(LARGEST_PAGE_HEADER, end - place)))
        page = header.struct()
        packed, larger = _int(page, 3), _int(page, 2)
        if packed < 0 or larger < 0 or place + header.place + packed > end:
            raise _DamagedError("a page lies outside of its column")
        numbers = _int(next((page[kind] for kind in (5, 7, 8) if isinstance(page.get(kind), dict)), {1: 0}), 1)
        if not 0 <= numbers <= max(chunk.values, 8 * max(larger, 1)):
            raise _DamagedError("a page claims more values than it can have")
        values += numbers if page.get(7) is None else 0
        unpacked += larger
        place += header.place + packed
    if values > chunk.values:
        raise _DamagedError("a column has more values than it claims")
    return unpacked


def _int(found: Any, number: int) -> int:
    value = _part(found, number)
    if not isinstance(value, int) or isinstance(value, bool):
        raise _DamagedError(f"field {number} is missing")
    return value


def _list(found: Any, number: int) -> list[Any]:
    value = _part(found, number)
    if not isinstance(value, list):
        raise _DamagedError(f"list {number} is missing")
    return value


def _struct(found: Any, number: int) -> dict[int, Any]:
    value = _part(found, number)
    if not isinstance(value, dict):
        raise _DamagedError(f"part {number} is missing")
    return value


def _part(found: Any, number: int) -> Any:
    return found.get(number) if isinstance(found, dict) else None


class _Compact:
    """Thrift's compact protocol: field number → value, without names."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.place = 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        found: dict[int, Any] = {}
        number = 0
        while True:
            head = self._byte()
            if head == 0:
                return found
            number = number + (head >> 4) if head >> 4 else self._zigzag()
            kind = head & 15
            found[number] = kind == 1 if kind in (1, 2) else self._value(kind, depth)

    def _value(self, kind: int, depth: int) -> Any:
        if depth > DEEPEST:
            raise _DamagedError("nested too deeply")
        if kind in (1, 2):
            return self._byte() == 1
        if kind == 3:
            return self._byte()
        if kind in (4, 5, 6):
            return self._zigzag()
        if kind == 7:
            return self._take(8)
        if kind == 8:
            return self._take(self._varint())
        if kind in (9, 10):
            head = self._byte()
            length = head >> 4 if head >> 4 != 15 else self._varint()
            self._check(length)
            return [self._value(head & 15, depth + 1) for _ in range(length)]
        if kind == 11:
            length = self._varint()
            self._check(length)
            kinds = self._byte() if length else 0
            return [(self._value(kinds >> 4, depth + 1), self._value(kinds & 15, depth + 1)) for _ in range(length)]
        if kind == 12:
            return self.struct(depth + 1)
        raise _DamagedError(f"there is no type {kind}")

    def _byte(self) -> int:
        if self.place >= len(self.content):
            raise _DamagedError("it ends too early")
        self.place += 1
        return self.content[self.place - 1]

    def _take(self, length: int) -> bytes:
        self._check(length)
        self.place += length
        return self.content[self.place - length : self.place]

    def _check(self, length: int) -> None:
        """Every element takes a byte at least."""
        if not 0 <= length <= len(self.content) - self.place:
            raise _DamagedError("it ends too early")

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
            if shift > 63:
                raise _DamagedError("a number is too long")

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
