"""Text files, plain or gzipped, read in pieces: lines of bounded length, rows of the same number of fields.

A gzipped file may unpack to no more than `UNPACKED_PER_BYTE` times its size, and no line is longer than
`LONGEST_LINE`; both are counted while reading.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpaa.errors import InputError, reason
from dpaa.files import check_regular, open_regular
from dpaa.kernels.memory import memory_at_hand

LONGEST_LINE = 4_000_000
"""Bytes.  A user's list in list form has that many with 400,000 items."""
UNPACKED_AT_LEAST, UNPACKED_PER_BYTE = 16_000_000, 50
"""Bytes any gzipped file may unpack to, and further ones per byte of it: logs shrink to a tenth, seldom more."""
PIECE = 4_000_000
NEWLINE, RETURN, QUOTE = 10, 13, 34


def text_lines(path: Path) -> Iterator[str]:
    """The lines of a UTF-8 file, plain or gzipped, with their ends; another encoding is an error naming the line."""
    with _opened(path) as (read_line, _):
        number = 0
        while line := read_line(LONGEST_LINE + 1):
            number += 1
            if len(line) > LONGEST_LINE:
                raise _too_long(path, number)
            try:
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                found = line[error.start : error.start + 4]
                raise InputError(
                    f"line {number:,} of {path} is not UTF-8 text (bytes {found!r}); save the file in UTF-8"
                ) from error


def rows(path: Path, separator: str) -> Iterator[tuple[int, list[str]]]:
    """The number of the (first) line and the fields of every row, header included; blank lines have no fields.

    Quotes mean something in files with commas alone.
    """
    lines = text_lines(path)
    if separator == ",":
        reader = csv.reader(lines, strict=True)
    else:
        reader = csv.reader(lines, delimiter=separator, quoting=csv.QUOTE_NONE)
    line = 1
    try:
        for cells in reader:
            yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"line {line:,} of {path} has wrong quotes ({error}); correct the line") from error


def check_rows(path: Path, separator: str, n_fields: int) -> None:
    """Refuse a file with a row that has not as many fields as the header, naming the line.

    Blank lines are no rows.  Where there are no quotes, separators are counted in large pieces of the file; quotes
    may hide separators and ends of lines, so with them every row is read.
    """
    quotes = separator == ","
    before, number = 0, 0
    """Separators since the last end of a line, and lines until then."""
    length = 0
    with _opened(path) as (_, read):
        while piece := read(PIECE):
            content = np.frombuffer(piece, dtype=np.uint8)
            if quotes and (content == QUOTE).any():
                break
            ends = np.flatnonzero(content == NEWLINE)
            fields = np.searchsorted(np.flatnonzero(content == ord(separator)), ends)
            total = int((content == ord(separator)).sum())
            if not len(ends):
                before, length = before + total, length + len(content)
                if length > LONGEST_LINE:
                    raise _too_long(path, number + 1)
                continue
            counts = np.diff(fields, prepend=0)
            counts[0] += before
            lengths = np.diff(ends, prepend=-1) - 1
            lengths[0] += length
            _check_counts(path, number, counts, lengths, content[np.maximum(ends - 1, 0)], n_fields)
            number += len(ends)
            before, length = total - int(fields[-1]), len(content) - 1 - int(ends[-1])
        else:
            if length and before + 1 != n_fields:
                raise _ragged(path, number + 1, before + 1, n_fields)
            return
    for line, cells in rows(path, separator):
        if cells and len(cells) != n_fields:
            raise _ragged(path, line, len(cells), n_fields)


def check_unpacked(path: Path) -> None:
    """Refuse a gzipped file that unpacks to too much, before anything is kept of it."""
    with _opened(path) as (_, read):
        while read(PIECE):
            pass


def _check_counts(
    path: Path,
    number: int,
    separators: NDArray[np.int64],
    lengths: NDArray[np.int64],
    last: NDArray[np.uint8],
    n_fields: int,
) -> None:
    """The lines of one piece; `last` is what stands before each end of a line, for ends of two characters."""
    if (lengths > LONGEST_LINE).any():
        raise _too_long(path, number + 1 + int((lengths > LONGEST_LINE).argmax()))
    blank = (lengths == 0) | ((lengths == 1) & (last == RETURN))
    wrong = (separators + 1 != n_fields) & ~blank
    if wrong.any():
        first = int(wrong.argmax())
        raise _ragged(path, number + 1 + first, int(separators[first]) + 1, n_fields)


def _ragged(path: Path, line: int, found: int, wanted: int) -> InputError:
    return InputError(
        f"line {line:,} of {path} has {found} field{'s' * (found != 1)} where the header has {wanted}; "
        "correct the line, or the separator with --format"
    )


def _too_long(path: Path, line: int) -> InputError:
    return InputError(
        f"line {line:,} of {path} is longer than {LONGEST_LINE / 1e6:g} MB; check that the file is a table of text"
    )


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Callable[[int], bytes], Callable[[int], bytes]]]:
    """Functions that read a line and a piece, of at most so many bytes; what a gzipped file unpacks to is bounded."""
    size = check_regular(path)
    with open_regular(path) as raw:
        zipped = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        stream = gzip.GzipFile(fileobj=raw) if zipped else raw
        most = min(UNPACKED_AT_LEAST + UNPACKED_PER_BYTE * size, memory_at_hand() // 4) if zipped else None
        total = 0

        def bounded(read: Callable[[int], bytes]) -> Callable[[int], bytes]:
            def reading(length: int) -> bytes:
                nonlocal total
                try:
                    found = read(length)
                except (OSError, EOFError, zlib.error) as error:
                    raise InputError(f"{path} cannot be read ({reason(error)}); check the file") from error
                total += len(found)
                if most is not None and total > most:
                    raise InputError(
                        f"{path} unpacks from {size:,} bytes to more than {most:,}; unpack it first if it is sound"
                    )
                return found

            return reading

        yield bounded(stream.readline), bounded(stream.read)
