"""What people name as a log becomes a table: files, folders, patterns, `-` for standard input."""

from __future__ import annotations

import codecs
import csv
import glob
import gzip
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote, urlsplit

import polars as pl

from dpaa._io import check_regular, read_bytes, temporary_folder
from dpaa._machine import memory_at_hand
from dpaa._text import without_secrets
from dpaa.data.columns import Column
from dpaa.data.parquet import MAGIC, absolute
from dpaa.data.tables import (
    QUOTING,
    JsonPart,
    ListPart,
    ParquetPart,
    Part,
    Table,
    TextPart,
    is_gzipped,
    is_utf8,
    lines_of,
)
from dpaa.errors import InputError, reason

STDIN, STDIN_NAME = "-", "standard input"
PATTERN = "*?["
MOST_FILES = 100_000
OURS = {"dataset.json": "a prepared dataset already", "manifest.json": "a run", "config.json": "a run"}
"""Files that tell what a folder of ours is."""
FORMATS = ("csv", "tsv", "inter", "jsonl", "parquet", "list")
BY_ENDING = {".csv": "csv", ".tsv": "tsv", ".inter": "inter", ".parquet": "parquet"}
BY_ENDING |= {".jsonl": "jsonl", ".ndjson": "jsonl"}
SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars (|)", "::": "double colons (::)"}
GIVEN_SEPARATORS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "bar": "|"}
"""Words for what is hard to type."""
UNPACKED_AT_LEAST, UNPACKED_PER_BYTE = 16_000_000, 50
"""Bytes any gzipped file may unpack to, and further ones per byte of it: logs shrink to a tenth, seldom more."""
HIVE_NOTHING = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class TextForm:
    """How a text file is to be read, as far as the user said.

    Parameters
    ----------
    separator : between fields; None = detected from the ending and the first line
    columns : names of the columns of a file without a header line
    encoding : None = UTF-8
    """

    separator: str | None = None
    columns: tuple[str, ...] | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        if self.separator is not None:
            given = GIVEN_SEPARATORS.get(self.separator.lower(), self.separator)
            if given != "::" and (len(given) != 1 or not given.isascii() or given in '"\n\r'):
                raise InputError(
                    f"the separator {self.separator!r} is not one character, `tab` or `::`; choose one of them"
                )
            object.__setattr__(self, "separator", given)
        if self.encoding is not None:
            try:
                codecs.lookup(self.encoding).encode("a")
            except (LookupError, TypeError, ValueError):
                raise InputError(
                    f"there is no encoding {self.encoding!r}; name one such as latin-1, cp1252 or utf-16"
                ) from None
        if self.columns is not None and (len(set(self.columns)) < len(self.columns) or not all(self.columns)):
            raise InputError(f"--columns needs a name for every column, each once, got {','.join(self.columns)!r}")


def open_log(sources: Sequence[str | Path] | str | Path, fmt: str | None = None, form: TextForm | None = None) -> Table:
    """One table of all that is named, in the order of the names; files of a folder or pattern in that of theirs.

    Parameters
    ----------
    sources : files, folders, patterns, or `-` for standard input
    fmt : one of `FORMATS`; None = told by the ending, or by the content
    form : how text files are read

    Returns
    -------
    a table
    """
    named = [sources] if isinstance(sources, str | Path) else list(sources)
    if not named:
        raise InputError("no file is named; name files, folders, patterns, or - for standard input")
    tables = [table for one in named for table in _tables(one, fmt, form or TextForm())]
    parts = tuple(part for table in tables for part in table.parts)
    if len(parts) == 1:
        return tables[0]
    names = [part.name for part in parts]
    twice = next((one for one in names if names.count(one) > 1), None) if len(set(names)) < len(names) else None
    if twice is not None:
        raise InputError(f"{twice} is named twice; its rows would be counted twice: name it once")
    notes = tuple(dict.fromkeys(note for table in tables for note in table.notes))
    return Table(f"{names[0]} and {len(names) - 1:,} more", parts, notes)


def open_table(
    path: str | Path, fmt: str | None = None, form: TextForm | None = None, shown: str | None = None
) -> Table:
    """The table in one file.

    Parameters
    ----------
    path : the file
    fmt, form : as in `open_log`
    shown : what messages call the file

    Returns
    -------
    a table
    """
    file, shown, form = Path(path), shown or str(path), form or TextForm()
    if fmt is not None and fmt not in FORMATS:
        raise InputError(f"there is no format {fmt!r}; choose one of {', '.join(FORMATS)}")
    if fmt == "tsv" and form.separator is None:  # said, not told by the ending
        form = replace(form, separator="\t")
    with _called(file, shown):
        check_file(file)
        fmt = fmt or _format_of(file, form)
        file = absolute(file)
    if fmt in ("parquet", "list", "jsonl") and form != TextForm():
        raise InputError(f"{shown} is read as {fmt}: separator, columns and encoding are of text; leave them out")
    with _called(file, shown):
        if fmt == "parquet":
            return Table(shown, (_parquet_part(file, shown),))
        check_unpacked(file)
        if fmt == "list":
            return Table(shown, (ListPart(shown, (Column.USER, Column.ITEM), file, "\x01", 0),))
        if fmt == "jsonl":
            return Table(shown, (JsonPart.open(file, shown),))
        return _text_table(file, shown, fmt, form)


def check_file(file: Path) -> None:
    """Refuse what is missing, a directory, a pipe or device, unreadable or empty."""
    if not read_bytes(file, 1, whole=False):
        raise InputError(f"{file} is empty; a table needs a header line and rows")


def check_unpacked(file: Path) -> None:
    """Refuse a gzipped file that unpacks to too much, before anything is kept of it."""
    if not is_gzipped(file):
        return
    size = check_regular(file)
    most = min(UNPACKED_AT_LEAST + UNPACKED_PER_BYTE * size, memory_at_hand() // 4)
    total = 0
    try:
        with gzip.open(file) as stream:
            while piece := stream.read(4_000_000):
                total += len(piece)
                if total > most:
                    raise InputError(
                        f"{file} unpacks from {size:,} bytes to more than {most:,}; unpack it first if it is sound"
                    )
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{file} cannot be read ({reason(error)}); check the file") from None


def name_of(sources: Sequence[str | Path] | str | Path) -> str:
    """What a dataset is called that was made from these: after the first file or folder, without its endings."""
    first = str(sources if isinstance(sources, str | Path) else sources[0])
    if first == STDIN:
        return "stdin"
    last = next((part for part in reversed(Path(first).parts) if not set(PATTERN) & set(part)), first)
    return Path(last).name.partition(".")[0] or Path(last).name or "log"


def ending_of(file_name: str) -> str:
    """The last ending of a name, the one before it where that is `.gz`; in small letters."""
    endings = [ending.lower() for ending in Path(file_name).suffixes]
    return endings[-2] if endings[-1:] == [".gz"] and len(endings) > 1 else (endings or [""])[-1]


# ---------------------------------------------------------------------- names of sources


def _tables(source: str | Path, fmt: str | None, form: TextForm) -> Iterator[Table]:
    words = str(source)
    if words == STDIN:
        yield open_table(_standard_input(), fmt, form, STDIN_NAME)
    elif isinstance(source, str) and "://" in words:
        if urlsplit(words).scheme != "file":
            raise InputError(f"{without_secrets(words)} is a URL; copy the file here first and name the copy")
        yield open_table(unquote(urlsplit(words).path), fmt, form)
    elif _is(Path(words).is_dir):
        files = _files_of(Path(words), fmt)
        for file, constants in zip(files, _partitions(Path(words), files), strict=True):
            table = open_table(file, fmt, form)
            further = {key: value for key, value in constants.items() if key not in table.columns}
            yield replace(table, parts=tuple(replace(part, constants=further) for part in table.parts))
    elif not _is(Path(words).exists) and set(PATTERN) & set(words):
        for file in _matching(words):
            yield from _tables(file, fmt, form)
    else:
        yield open_table(words, fmt, form)


def _is(question: Callable[[], bool]) -> bool:
    """What a path is; one that is none (too long, say) is nothing."""
    try:
        return question()
    except OSError:
        return False


def _matching(pattern: str) -> list[Path]:
    """Files and folders that a pattern names, ascending."""
    found = [Path(file) for file in sorted(glob.glob(pattern, recursive=True))]  # noqa: PTH207  (absolute ones too)
    if not found:
        raise InputError(f"no file is named like {pattern}; check the pattern")
    if len(found) > MOST_FILES:
        raise InputError(f"more than {MOST_FILES:,} files are named like {pattern}; name fewer")
    return found


def _files_of(folder: Path, fmt: str | None) -> list[Path]:
    """Its files and those of its folders, without hidden ones; of a folder with none that we read, an error."""
    for name, what in OURS.items():
        if (folder / name).is_file():
            raise InputError(f"{folder} is {what}; name files of interactions")
    found: list[Path] = []
    for file in sorted(folder.rglob("*")):
        hidden = any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)
        if not hidden and file.is_file() and (fmt is not None or ending_of(file.name) in BY_ENDING):
            found.append(file)
        if len(found) > MOST_FILES:
            raise InputError(f"{folder} has more than {MOST_FILES:,} files; name a smaller folder")
    if not found:
        known = ", ".join(BY_ENDING)
        raise InputError(f"{folder} has no file that ends in one of {known}; name files, or their --format")
    return found


def _partitions(folder: Path, files: Sequence[Path]) -> list[dict[str, str | None]]:
    """Of each file, the columns in its path as Spark and Hive write them: `day=2024-05-01/part-0.parquet`."""
    found = []
    for file in files:
        pairs = (part.partition("=") for part in file.relative_to(folder).parts[:-1] if "=" in part)
        found.append(
            {unquote(key): None if value == HIVE_NOTHING else unquote(value) for key, _, value in pairs if key}
        )
    return found


@cache
def _standard_input() -> Path:
    """A copy of it, made once."""
    if sys.stdin is None or sys.stdin.isatty():
        raise InputError(
            "standard input is the keyboard; send a log to it, as in: zcat clicks.csv.gz | dpaa data log -"
        )
    return _copy(STDIN_NAME, lambda stream: shutil.copyfileobj(sys.stdin.buffer, stream))


@cache
def _copies() -> tempfile.TemporaryDirectory[str]:
    return temporary_folder("dpaa-input-")


_numbers = count()


def _copy(shown: str, write: Callable[[BinaryIO], object]) -> Path:
    """A new temporary file with what `write` puts into it."""
    try:
        file = Path(_copies().name) / f"{next(_numbers)}"
        with file.open("xb") as stream:
            write(stream)
    except OSError as error:
        raise InputError(
            f"cannot copy {shown} to {tempfile.gettempdir()} ({reason(error)}); make room there, or set TMPDIR"
        ) from None
    return file


@contextmanager
def _called(path: Path, shown: str) -> Iterator[None]:
    """A sentence about a copy is one about what it is a copy of."""
    try:
        yield
    except InputError as error:
        if str(path) == shown:
            raise
        raise InputError(str(error).replace(str(path), shown)) from None


# ---------------------------------------------------------------------- formats


def _format_of(file: Path, form: TextForm) -> str:
    """By the ending; else by the content."""
    ending = ending_of(file.name)
    if ending in BY_ENDING:
        return BY_ENDING[ending]
    if form != TextForm():
        return "csv"
    if ending != ".txt" and read_bytes(file, 4, whole=False)[:4] == MAGIC:
        return "parquet"
    with lines_of(file) as lines:
        first = next((line for line in lines if line.strip()), "")
    if ending == ".item" and ":token" in first:  # what RecBole knows of items; MovieLens has other files of this ending
        return "inter"
    if first.lstrip().startswith("{"):
        return "jsonl"
    if "\t" in first:
        return "tsv"
    separator = _detect(first, ",")
    if separator != "," and len(_fields(first, separator)) > 1:
        return "csv"
    if ending != ".txt":
        raise InputError(
            f"the ending of {file} does not tell its format; pass --format with one of {', '.join(FORMATS)}"
        )
    if "," in first and len(first.split()) == 1:
        raise InputError(f"{file} has no tabs or spaces but commas in its first line; pass --format csv")
    return "list"


def _parquet_part(file: Path, shown: str) -> Part:
    try:
        return ParquetPart.open(file, shown)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(
            f"{shown} is not a readable Parquet file ({reason(error)}); write it again or pass --format"
        ) from error


def _text_table(file: Path, shown: str, fmt: str, form: TextForm) -> Table:
    """A text file with separators: find the header line and the separator."""
    if form.encoding is not None:
        file = _decoded(file, shown, form.encoding)
    usual = "," if fmt == "csv" else "\t"
    with lines_of(file) as lines:
        skipped, first = next(((number, line) for number, line in enumerate(lines) if line.strip()), (0, ""))
        n_columns = None if form.columns is None else len(form.columns)
        separator = form.separator or (usual if fmt == "inter" else _detect(first, usual, n_columns))
        header = list(form.columns or _header(first, lines, separator, shown))
    if not first:
        raise InputError(f"{shown} is empty; a table needs a header line and rows")
    columns = [one.partition(":")[0] for one in header] if fmt == "inter" else header
    twice = next((one for one in columns if columns.count(one) > 1), None)
    if twice is not None:
        raise InputError(f"{shown} has two columns named {twice!r}; rename one")
    several = frozenset(one.partition(":")[0] for one in header if fmt == "inter" and one.endswith("_seq"))
    part = TextPart(shown, tuple(columns), file, separator, skipped + (form.columns is None), several)
    told = separator == usual or form.separator is not None
    words = SEPARATORS.get(separator, repr(separator))
    return Table(shown, (part,), () if told else (f"{shown}: its fields are taken to be separated by {words}",))


def _header(first: str, further: Iterator[str], separator: str, shown: str) -> list[str]:
    """The names in the header line, which quotes may carry over several lines."""
    if not is_utf8(first):
        raise InputError(f"line 1 of {shown} is not UTF-8 text; save the file in UTF-8, or name its --encoding")
    if separator not in QUOTING:
        return first.rstrip("\r\n").split(separator)

    def lines() -> Iterator[str]:
        yield first
        yield from further

    try:
        return next(csv.reader(lines(), delimiter=separator, strict=True))
    except csv.Error as error:
        raise InputError(f"line 1 of {shown} has wrong quotes ({error}); correct the line") from error


def _fields(line: str, separator: str) -> list[str]:
    """A line cut at a separator."""
    if separator in QUOTING:
        with suppress(csv.Error):
            return next(csv.reader([line], delimiter=separator), [])
    return line.rstrip("\r\n").split(separator)


def _detect(line: str, usual: str, n_columns: int | None = None) -> str:
    """The separator of a first line: the usual one where it cuts it, else the one that cuts it into most fields.

    Where the number of columns is known, the first that cuts the line into so many.
    """
    found = {separator: len(_fields(line, separator)) for separator in dict.fromkeys((usual, *SEPARATORS))}
    if n_columns is not None:
        return next((separator for separator, n in found.items() if n == n_columns), usual)
    best = max(found, key=lambda separator: found[separator])
    return best if found[usual] == 1 < found[best] else usual


def _decoded(file: Path, shown: str, encoding: str) -> Path:
    """A copy in UTF-8, which is what DuckDB reads."""
    # Where a line's end is the usual byte, each line is decoded apart, so that a wrong one can be named.
    apart = "\n".encode(encoding) == b"\n"
    how: Any = {"mode": "rb"} if apart else {"mode": "rt", "encoding": encoding, "newline": ""}

    def write(stream: BinaryIO) -> None:
        number = 1
        with (gzip.open if is_gzipped(file) else open)(file, **how) as lines:
            try:
                for line in lines:
                    stream.write((line.decode(encoding) if apart else line).encode())
                    number += 1
            except UnicodeError as error:
                raise InputError(
                    f"line {number:,} of {shown} is not {encoding} text ({reason(error)}); name another --encoding"
                ) from None

    return _copy(shown, write)
