"""Text files, plain or gzipped, read in pieces: lines of bounded length, rows of the same number of fields.

A gzipped file may unpack to no more than `UNPACKED_PER_BYTE` times its size, and no line is longer than
`LONGEST_LINE`; both are counted while reading.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from dpaa._io import check_regular, open_regular
from dpaa._machine import memory_at_hand
from dpaa.data.separators import QUOTING
from dpaa.errors import InputError, UnreadableError, reason

LONGEST_LINE = 4_000_000
"""Bytes.  A user's list in list form has that many with 400,000 items."""
CONTINUED = 100
"""Lines that a quoted field may go on for, where a file has faults."""
UNPACKED_AT_LEAST, UNPACKED_PER_BYTE = 16_000_000, 50
"""Bytes any gzipped file may unpack to, and further ones per byte of it: logs shrink to a tenth, seldom more."""
PIECE = 4_000_000


class Wrong(NamedTuple):
    """What is wrong with a row: its kind, how the sentence about its line goes on, and the remedy."""

    kind: str
    says: str
    remedy: str


NO_TEXT = Wrong("no UTF-8 text", "is not UTF-8 text", "save the file in UTF-8, or name its --encoding")


def raw_lines(path: Path) -> Iterator[bytes]:
    """The lines of a file, plain or gzipped, with their ends, as they are."""
    with opened(path) as stream:
        number = 0
        while line := stream.readline(LONGEST_LINE + 1):
            number += 1
            if len(line) > LONGEST_LINE:
                raise _too_long(path, number)
            yield line


def text_lines(path: Path) -> Iterator[str]:
    """The same of a UTF-8 file as text; another encoding is an error naming the line."""
    for number, line in enumerate(raw_lines(path), start=1):
        try:
            yield _decoded(line, number)
        except UnicodeDecodeError as error:
            found = line[error.start : error.start + 4]
            raise InputError(
                f"line {number:,} of {path} is not UTF-8 text (bytes {found!r}); save the file in UTF-8, or name its "
                "--encoding"
            ) from error


def _decoded(line: bytes, number: int) -> str:
    """Text; a mark of the byte order may stand before the first line."""
    return line.decode("utf-8-sig" if number == 1 else "utf-8")


def rows(path: Path, separator: str) -> Iterator[tuple[int, list[str]]]:
    """The number of the (first) line and the fields of every row, header included; blank lines have no fields.

    Quotes mean something in files with commas or semicolons alone.
    """
    reader = _cut(text_lines(path), separator)
    line = 1
    try:
        for cells in reader:
            yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        if b"\r" in next(raw_lines(path)).rstrip(b"\r\n"):
            raise UnreadableError(f"{path} has line ends of old Macs (CR alone); save it with line ends LF") from None
        raise InputError(f"line {line:,} of {path} has wrong quotes ({error}); correct the line") from error


def _cut(lines: Iterable[str], separator: str) -> Any:
    quoted = separator in QUOTING
    quoting: Any = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    return csv.reader(lines, delimiter=separator, quoting=quoting, strict=quoted)


def rows_or_faults(path: Path, separator: str) -> Iterator[tuple[int, str, list[str], Wrong | None]]:
    """The same for a file with faults: number of the first line, text and fields of every row, or what is wrong there.

    A quote that is not closed within `CONTINUED` lines is a fault of the line it stands in; the next is read afresh.
    """
    lines: deque[tuple[int, bytes]] = deque()
    coming = enumerate(raw_lines(path), start=1)
    while lines or (lines := deque(islice(coming, 1))):
        number, raw = lines.popleft()
        try:
            text = _decoded(raw, number)
        except UnicodeDecodeError:
            yield number, raw.decode(errors="backslashreplace"), [], NO_TEXT
            continue
        taken: list[tuple[int, bytes]] = []
        while separator in QUOTING and text.count('"') % 2 and len(taken) < CONTINUED:
            if not lines:
                lines.extend(islice(coming, 1))
            if not lines:
                break
            taken.append(lines.popleft())
            text += taken[-1][1].decode(errors="backslashreplace")
        if taken and text.count('"') % 2:
            lines.extendleft(reversed(taken))
            text = _decoded(raw, number)
        try:
            cells: list[str] = next(_cut([f"{line}\n" for line in text.rstrip("\r\n").split("\n")], separator), [])
        except csv.Error as error:
            yield number, text, [], Wrong("wrong quotes", f"has wrong quotes ({error})", "correct the line")
            continue
        yield number, text, cells if text.strip("\r\n") else [], None


def check_rows(path: Path, separator: str, n_fields: int) -> None:
    """Refuse a file with a row that has not as many fields as the header, naming the line.

    Blank lines are no rows.  Where there are no quotes, separators are counted in large pieces of the file; quotes
    may hide separators and ends of lines, so with them every row is read.
    """
    number, rest = 0, b""
    with opened(path) as stream:
        while piece := stream.read(PIECE):
            if separator in QUOTING and b'"' in piece:
                break
            whole, newline, rest = (rest + piece).rpartition(b"\n")
            number += _check_lines(path, number, whole + newline, separator, n_fields)
            if len(rest) > LONGEST_LINE:
                raise _too_long(path, number + 1)
        else:
            _check_lines(path, number, rest + b"\n", separator, n_fields)
            return
    for line, cells in rows(path, separator):
        if cells and len(cells) != n_fields:
            raise _ragged(path, line, len(cells), n_fields)


def check_lengths(path: Path) -> None:
    """Refuse a line that is too long, in large pieces of the file."""
    number, length = 0, 0
    with opened(path) as stream:
        while piece := stream.read(PIECE):
            ends = np.flatnonzero(np.frombuffer(piece, dtype=np.uint8) == ord("\n"))
            longest = max(length + int(ends[0]) if len(ends) else 0, int(np.diff(ends).max(initial=0)))
            length = length + len(piece) if not len(ends) else len(piece) - int(ends[-1])
            if max(longest, length) > LONGEST_LINE:
                raise _too_long(path, number + 1)
            number += len(ends)


def check_unpacked(path: Path) -> None:
    """Refuse a gzipped file that unpacks to too much, before anything is kept of it."""
    with opened(path) as stream:
        while stream.read(PIECE):
            pass


def _check_lines(path: Path, before: int, lines: bytes, separator: str, n_fields: int) -> int:
    """Refuse a line that is too long or has another number of fields.  Returns how many lines there are."""
    content = np.frombuffer(lines, dtype=np.uint8)
    ends = np.flatnonzero(content == ord("\n"))
    lengths = np.diff(ends, prepend=-1) - 1
    fields = np.diff(np.searchsorted(np.flatnonzero(content == ord(separator)), ends), prepend=0) + 1
    blank = (lengths == 0) | ((lengths == 1) & (content[ends - 1] == ord("\r")))
    wrong = (lengths > LONGEST_LINE) | ((fields != n_fields) & ~blank)
    if wrong.any():
        first = int(wrong.argmax())
        line = before + first + 1
        if lengths[first] > LONGEST_LINE:
            raise _too_long(path, line)
        raise _ragged(path, line, int(fields[first]), n_fields)
    return len(ends)


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
def opened(path: Path) -> Iterator[BinaryIO]:
    """A file, unpacked if it is gzipped; what it unpacks to is bounded."""
    size = check_regular(path)
    with open_regular(path) as raw:
        zipped = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        most = min(UNPACKED_AT_LEAST + UNPACKED_PER_BYTE * size, memory_at_hand() // 4) if zipped else None
        yield io.BufferedReader(_Bounded(path, gzip.GzipFile(fileobj=raw) if zipped else raw, size, most))


class _Bounded(io.RawIOBase):
    """A stream that ends in a sentence where it cannot be read, or gives more bytes than it may."""

    def __init__(self, path: Path, stream: io.BufferedIOBase, size: int, most: int | None) -> None:
        self.path, self.stream, self.size, self.most, self.total = path, stream, size, most, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        try:
            found = self.stream.readinto(buffer)
        except (OSError, EOFError, zlib.error) as error:
            raise UnreadableError(f"{self.path} cannot be read ({reason(error)}); check the file") from error
        self.total += found
        if self.most is not None and self.total > self.most:
            raise UnreadableError(
                f"{self.path} unpacks from {self.size:,} bytes to more than {self.most:,}; "
                "unpack it first if it is sound"
            )
        return found
