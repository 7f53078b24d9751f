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
from os import SEEK_END
from pathlib import Path
from threading import RLock
from typing import Any, BinaryIO, NamedTuple, TypeVar

import polars as pl

from dpaa._io import check_text, open_regular
from dpaa._machine import memory_at_hand
from dpaa.errors import InputError

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
DICTIONARY_PAGE = 7
PAGE_KINDS = (5, DICTIONARY_PAGE, 8)
"""Fields of a page's header in parquet.thrift: data, dictionary, data of the second version."""

T = TypeVar("T")


def parquet_schema(file: Path) -> dict[str, pl.DataType]:
    """Names and types of the columns, from the footer of the file."""
    with _as_polars_error(file), open_regular(file) as opened:
        _read_footer(opened)
        return dict(pl.scan_parquet(absolute(file), glob=False).collect_schema())


def read_parquet(file: Path, columns: Sequence[str]) -> pl.DataFrame:
    """Some of the columns of one file; one whose content would be out of proportion is refused before it is read.

    A damaged file raises an error of polars, whose words are for whoever knows what the file is for.
    """
    with _as_polars_error(file):
        check_size(file, columns)
        return pl.read_parquet(absolute(file), columns=list(columns), glob=False)


def parquet_rows(file: Path) -> int:
    """How many rows the footer claims."""
    with _as_polars_error(file), open_regular(file) as opened:
        return _read_footer(opened)[1]


def parquet_blocks(file: Path, columns: Sequence[str], rows: int) -> Iterator[pl.DataFrame]:
    """Some of the columns of one file, so many rows at a time; checked as a whole file is."""
    with _as_polars_error(file):
        check_size(file, columns, at_once=rows)
    table = pl.scan_parquet(absolute(file), glob=False).select(columns)
    for first in range(0, parquet_rows(file), rows):
        with _as_polars_error(file):
            block = table.slice(first, rows).collect()
        yield block


def check_size(file: Path, columns: Sequence[str] | None = None, at_once: int | None = None) -> None:
    """Refuse a file of more rows or bytes than fit its size, or than memory holds; all columns without argument.

    `at_once`: rows that are read together, all without it.
    """
    with open_regular(file) as opened:
        size, rows, chunks = _read_footer(opened)
        chosen = [chunk for chunk in chunks if columns is None or chunk.column in columns]
        unpacked = sum(_unpacked_bytes(opened, chunk, size) for chunk in chosen)
    if rows > ROWS_AT_LEAST + ROWS_PER_BYTE * size:
        raise InputError(f"{file} claims {rows:,} rows in {size:,} bytes; write it again")
    if unpacked > BYTES_AT_LEAST + BYTES_PER_BYTE * size:
        raise InputError(
            f"{file} would unpack from {size:,} bytes to {unpacked:,}, more than {BYTES_PER_BYTE} times as many; "
            "write it again without compression if it is sound"
        )
    values = rows * len({chunk.column for chunk in chosen})
    share = 1 if at_once is None else min(at_once / max(rows, 1), 1)
    if share * max(values * BYTES_PER_VALUE, 2 * unpacked) > memory_at_hand():
        raise InputError(f"{file} claims {rows:,} rows, more than the memory at hand; use a smaller file")


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
        try:
            pl.Series([0]).to_numpy()  # the first of a process looks up numpy, and an interrupt meanwhile is a panic
            yield
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            if KeyboardInterrupt.__name__ in str(error):  # ctrl-C in the midst of polars, which takes it for a fault
                raise KeyboardInterrupt from None
            raise


_one_stderr = RLock()


@contextmanager
def _as_polars_error(file: Path) -> Iterator[None]:
    """A damaged file may make polars panic, which is no `Exception`, or end our own walk: the same error for all."""
    if not file.exists():
        raise FileNotFoundError(str(file))
    try:
        with panics_unseen():
            yield
    except (pl.exceptions.PanicException, _DamagedError) as error:
        raise pl.exceptions.ComputeError(f"damaged: {error}") from None


class _DamagedError(Exception):
    """The bytes are not those of a Parquet file."""


def _need(sound: bool, otherwise: str) -> None:
    if not sound:
        raise _DamagedError(otherwise)


class _Chunk(NamedTuple):
    """The values of one column in one group of rows."""

    column: str
    start: int
    packed: int
    values: int


def _read_footer(opened: BinaryIO) -> tuple[int, int, list[_Chunk]]:
    """The size of the file, the number of rows, and where the columns are."""
    size = opened.seek(0, SEEK_END)
    _need(size >= 12, "too short for a Parquet file")
    opened.seek(size - 8)
    end = opened.read(8)
    length = int.from_bytes(end[:4], "little")
    _need(end[4:] == MAGIC and length <= min(size - 8, LARGEST_FOOTER), "the end is not that of a Parquet file")
    opened.seek(size - 8 - length)
    footer = _Compact(opened.read(length)).struct()
    rows, groups = _field(footer, 3, int), _field(footer, 4, list)
    chunks = []
    for group in groups:
        for column in _field(group, 1, list):
            about = _field(column, 3, dict)
            path, values = _field(about, 3, list), _field(about, 5, int)
            same = len(path) != 1 or values == _field(group, 3, int)
            _need(same, "a column has another number of values than its group has rows")
            name = path[0].decode("utf-8", errors="replace") if path and isinstance(path[0], bytes) else ""
            places = [place for place in (about.get(9), about.get(11)) if isinstance(place, int) and place > 0]
            chunks.append(_Chunk(name, min(places, default=0), _field(about, 7, int), values))
    total = sum(_field(group, 3, int) for group in groups)
    _need(rows == total >= 0, "the number of rows is not the sum of the groups'")
    return size, rows, chunks


def _unpacked_bytes(opened: BinaryIO, chunk: _Chunk, size: int) -> int:
    """What the pages of a chunk unpack to, by their own headers."""
    place, end, unpacked, values = chunk.start, chunk.start + chunk.packed, 0, 0
    _need(chunk.packed >= 0 and 0 < chunk.start <= end <= size, "a column lies outside of the file")
    while place < end:
        opened.seek(place)
        header = _Compact(opened.read(min(LARGEST_PAGE_HEADER, end - place)))
        page = header.struct()
        larger, packed = _field(page, 2, int), _field(page, 3, int)
        place += header.place + packed
        _need(packed >= 0 and larger >= 0 and place <= end, "a page lies outside of its column")
        about = next((page[kind] for kind in PAGE_KINDS if isinstance(page.get(kind), dict)), {1: 0})
        numbers = _field(about, 1, int)
        most = max(chunk.values, 8 * max(larger, 1))
        _need(0 <= numbers <= most, "a page claims more values than it can have")
        values += numbers if page.get(DICTIONARY_PAGE) is None else 0
        unpacked += larger
    _need(values <= chunk.values, "a column has more values than it claims")
    return unpacked


def _field(found: Any, number: int, kind: type[T]) -> T:
    """A field of a struct, by its number in parquet.thrift."""
    value = found.get(number) if isinstance(found, dict) else None
    if not isinstance(value, kind) or isinstance(value, bool):
        raise _DamagedError(f"field {number} is missing")
    return value


class _Compact:
    """Thrift's compact protocol: field number → value, without names."""

    def __init__(self, content: bytes) -> None:
        self.content, self.place = content, 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        found: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._zigzag()
            kind = head & 15
            found[number] = kind == 1 if kind in (1, 2) else self._value(kind, depth)
        return found

    def _value(self, kind: int, depth: int) -> Any:
        _need(depth <= DEEPEST, "nested too deeply")
        if kind in (1, 2, 3):  # truth values in lists, bytes
            return self._byte()
        if kind in (4, 5, 6):  # integers of 16, 32 and 64 bits
            return self._zigzag()
        if kind in (7, 8):  # a float, bytes of any number
            return self._take(8 if kind == 7 else self._varint())
        if kind in (9, 10):  # a list, a set
            head = self._byte()
            return self._values([head & 15], head >> 4 if head >> 4 != 15 else self._varint(), depth)
        if kind == 11:  # a map: keys and values in turn
            length = self._varint()
            kinds = self._byte() if length else 0
            return self._values([kinds >> 4, kinds & 15], length, depth)
        _need(kind == 12, f"there is no type {kind}")
        return self.struct(depth + 1)

    def _values(self, kinds: list[int], length: int, depth: int) -> list[Any]:
        """Every element takes a byte at least."""
        _need(length <= len(self.content) - self.place, "it ends too early")
        return [self._value(kind, depth + 1) for _ in range(length) for kind in kinds]

    def _byte(self) -> int:
        return self._take(1)[0]

    def _take(self, length: int) -> bytes:
        self.place += length
        _need(self.place <= len(self.content), "it ends too early")
        return self.content[self.place - length : self.place]

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 64, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise _DamagedError("a number is too long")

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
