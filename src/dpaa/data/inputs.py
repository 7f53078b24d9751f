"""Open the inputs of a log: files, folders, patterns, `-` for standard input."""

import csv
import glob
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from dpaa._io import read_bytes, resolve_path, temporary_folder
from dpaa._text import parse_json, without_secrets
from dpaa.data.ids import Column
from dpaa.data.parquet import MAGIC, check_size
from dpaa.data.tables import QUOTING, Part, Table, lines_of
from dpaa.errors import InputError, reason

BLOCK, CHUNK = 16_000_000, 64_000
"""Bytes; a line that fills a block is refused."""

STDIN, STDIN_NAME = "-", "standard input"
PATTERN = "*?["
OURS = {"dataset.json": "a prepared dataset already", "manifest.json": "a run", "config.json": "a run"}
"""Files by which a folder of ours is recognised."""
FORMATS = ("csv", "tsv", "inter", "jsonl", "parquet", "list")
BY_ENDING = {".csv": "csv", ".tsv": "tsv", ".inter": "inter", ".parquet": "parquet"}
BY_ENDING |= {".jsonl": "jsonl", ".ndjson": "jsonl"}
SEPARATORS = (",", "\t", ";", "|", "::")
WORDS = {"tab": "\t", "\\t": "\t", "comma": ","}
ENCODINGS = ("utf-8", "utf-16", "latin-1")
"""Those that DuckDB reads."""


@dataclass(frozen=True)
class TextForm:
    """How a text file is to be read.

    Parameters
    ----------
    separator : one of `SEPARATORS`, or a key of `WORDS`; None = detected from the ending and the first line
    columns : names of the columns of a file without a header line
    encoding : one of `ENCODINGS`
    """

    separator: str | None = None
    columns: tuple[str, ...] | None = None
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        object.__setattr__(self, "separator", WORDS.get(self.separator or "", self.separator))
        if self.separator is not None and self.separator not in SEPARATORS:
            raise InputError(f"there is no separator {self.separator!r}; choose one of comma tab ; | ::")
        if self.encoding not in ENCODINGS:
            raise InputError(f"there is no encoding {self.encoding!r}; choose one of {', '.join(ENCODINGS)}")


def open_log(sources: Sequence[str | Path] | str | Path, fmt: str | None = None, form: TextForm | None = None) -> Table:
    """Open all files that are named as one table, in the order of the names.

    Parameters
    ----------
    sources : files, folders, patterns, or `-` for standard input; all of one format
    fmt : one of `FORMATS`; None = by the ending, or by the content
    form : how text files are read

    Returns
    -------
    a table
    """
    named = [sources] if isinstance(sources, str | Path) else list(sources)
    parts = tuple(part for path in named for part in _parts(path, fmt, form))
    names = [part.name for part in parts]
    if len(names) == 1:
        return Table(names[0], parts)
    if twice := [name for name in names if names.count(name) > 1]:
        raise InputError(f"{twice[0]} is named twice; its rows would be counted twice: name it once")
    if not parts or len({part.format for part in parts}) > 1:
        raise InputError("a log is one or several files of one format; name such files, folders or patterns")
    return Table(f"{names[0]} and {len(names) - 1:,} more", parts)


def open_table(path: str | Path, fmt: str | None = None, form: TextForm | None = None) -> Table:
    """Open the table in one file.

    Parameters
    ----------
    path : the file
    fmt, form : as in `open_log`

    Returns
    -------
    a table
    """
    return Table(str(path), (_part(Path(path), str(path), fmt, form or TextForm()),))


def name_of(sources: Sequence[str | Path] | str | Path) -> str:
    """Name a dataset after the first of its files or folders, without endings."""
    first = str(sources if isinstance(sources, str | Path) else sources[0])
    if first == STDIN:
        return "stdin"
    last = next((part for part in reversed(Path(first).parts) if not set(PATTERN) & set(part)), first)
    return Path(last).name.partition(".")[0] or Path(last).name or "log"


def ending_of(file_name: str) -> str:
    """The last ending of a name, the one before it where that is `.gz`; in small letters."""
    return Path(file_name.lower().removesuffix(".gz")).suffix


def _parts(source: str | Path, fmt: str | None, form: TextForm | None) -> Iterator[Part]:
    words, form = str(source), form or TextForm()
    if words == STDIN:
        yield _part(Path(_standard_input().name, "log"), STDIN_NAME, fmt, form)
    elif "://" in words and isinstance(source, str):
        raise InputError(f"{without_secrets(words)} is a URL; download the file first and name the copy")
    elif os.path.isdir(words):  # noqa: PTH112  (`Path.is_dir` raises on a name that is too long)
        for file in _files_of(Path(words), fmt):
            part = _part(file, str(file), fmt, form)
            # Columns in the path, as Spark and Hive write them: `day=2024-05-01/part-0.parquet`.
            keys = (part.partition("=")[0] for part in file.relative_to(words).parts[:-1] if "=" in part)
            hive = tuple(key for key in keys if part.format == "parquet" and key not in part.columns)
            yield replace(part, partitions=hive)
    elif set(PATTERN) & set(words) and not os.path.exists(words):  # noqa: PTH110
        matches = sorted(glob.glob(words, recursive=True))  # noqa: PTH207  (absolute ones too)
        if not matches:
            raise InputError(f"no file is named like {words}; check the pattern")
        for match in matches:
            yield from _parts(Path(match), fmt, form)
    else:
        yield _part(Path(words), words, fmt, form)


def _files_of(folder: Path, fmt: str | None) -> list[Path]:
    """List the files of a folder and of the folders in it, without hidden ones."""
    for name, what in OURS.items():
        if (folder / name).is_file():
            raise InputError(f"{folder} is {what}; name files of interactions")
    files = [
        file
        for file in sorted(folder.rglob("*"))
        if (fmt is not None or ending_of(file.name) in BY_ENDING)
        and not any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)
        and file.is_file()
    ]
    if not files:
        raise InputError(f"{folder} has no file that ends in one of {', '.join(BY_ENDING)}; name files, or a --format")
    return files


@cache
def _standard_input() -> TemporaryDirectory[str]:
    """A copy of standard input, made once, since it is read more than once."""
    if sys.stdin is None or sys.stdin.isatty():
        raise InputError("standard input is the keyboard; pipe a log to it: zcat clicks.csv.gz | dpaa data log -")
    # Copied as bytes: what it is (gzipped, Parquet) shows when the copy is opened like any other file.
    folder = temporary_folder("dpaa-input-")
    with Path(folder.name, "log").open("xb") as stream:
        shutil.copyfileobj(sys.stdin.buffer, stream)
    return folder


def _part(file: Path, shown: str, fmt: str | None, form: TextForm) -> Part:
    if fmt is not None and fmt not in FORMATS:
        raise InputError(f"there is no format {fmt!r}; choose one of {', '.join(FORMATS)}")
    if not read_bytes(file, 1, whole=False):
        raise InputError(f"{shown} is empty; a table needs a header line and rows")
    fmt, file = fmt or _format_of(file, shown, form), resolve_path(file)
    if fmt in ("parquet", "list", "jsonl") and form != TextForm():
        raise InputError(f"{shown} is read as {fmt}: separator, columns and encoding are of text; leave them out")
    if fmt == "parquet":
        try:
            return Part(shown, check_size(file, ())[0], file, fmt)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise InputError(f"{shown} is not a readable Parquet file ({reason(error)}); write it again") from error
    _check_lines(file, shown)
    if fmt == "list":
        return Part(shown, (Column.USER, Column.ITEM), file, fmt)
    if fmt == "jsonl":
        return Part(shown, _json_keys(file, shown), file, fmt)
    return _text_part(file, shown, fmt, form)


def _check_lines(file: Path, shown: str) -> None:
    """Refuse lines that fill a whole block: DuckDB drops lines longer than two of its buffers silently."""
    with file.open("rb") as stream:
        blocks = range(0, 0 if stream.read(2) == b"\x1f\x8b" else file.stat().st_size - BLOCK, BLOCK)
        for block in blocks:  # nearly always the first chunk of a block has a line end, so little of the file is read
            stream.seek(block)
            if not any(b"\n" in stream.read(CHUNK) for _ in range(0, BLOCK, CHUNK)):
                raise InputError(f"{shown} has a line of more than {BLOCK / 1e6:g} MB after byte {block:,}; correct it")


def _first_line(file: Path, encoding: str = "utf-8") -> tuple[int, str]:
    """Read the first line that is not blank, and count those before it."""
    with lines_of(file, encoding) as lines:
        return next(((number, line) for number, line in enumerate(lines) if line.strip()), (0, ""))


def _format_of(file: Path, shown: str, form: TextForm) -> str:
    """Find the format of a file by its ending, else by its content."""
    ending = ending_of(shown)
    if ending in BY_ENDING or form != TextForm():
        return BY_ENDING.get(ending, "csv")
    # By the first bytes and no further: an ending may be missing, but a file of gigabytes is not read for that.
    if read_bytes(file, 4, whole=False)[:4] == MAGIC:
        return "parquet"
    first = _first_line(file)[1]
    if first.lstrip().startswith("{"):
        return "jsonl"
    if ending == ".item" and ":token" in first:  # RecBole's; MovieLens has other files of this ending
        return "inter"
    if _detect(first, ",", None) != ",":
        return "csv"
    if ending != ".txt" or ("," in first and len(first.split()) == 1):
        raise InputError(f"the format of {shown} is not clear; pass --format with one of {', '.join(FORMATS)}")
    return "list"


def _json_keys(file: Path, shown: str) -> tuple[str, ...]:
    """The keys of the objects in the first lines."""
    keys: dict[str, None] = {}
    with lines_of(file) as lines:
        for line in islice(lines, 1000):
            with suppress(ValueError, TypeError):
                keys |= dict.fromkeys({**parse_json(line)})
    if not keys:
        raise InputError(f"{shown} has no JSON object in its first 1,000 lines; JSON lines are one object per line")
    return tuple(keys)


def _text_part(file: Path, shown: str, fmt: str, form: TextForm) -> Part:
    """Find the header line and the separator of a text file."""
    skipped, first = _first_line(file, form.encoding)
    if not first:
        raise InputError(f"{shown} is empty; a table needs a header line and rows")
    usual = "," if fmt == "csv" else "\t"
    separator = form.separator or (_detect(first, usual, form.columns) if fmt == "csv" else usual)
    # A frame's index has no name, nor has what follows a separator at the end of a line.
    header = form.columns or tuple(one or f"column {n}" for n, one in enumerate(_fields(first, separator), start=1))
    try:
        first.encode()
    except UnicodeEncodeError:
        raise InputError(
            f"line 1 of {shown} is not UTF-8 text; save it in UTF-8, or name its encoding: --format encoding=…"
        ) from None
    columns = tuple(name.partition(":")[0] for name in header) if fmt == "inter" else header
    lower = [name.lower() for name in columns]  # SQL tells no case apart
    if twice := [name for name in columns if lower.count(name.lower()) > 1]:
        raise InputError(f"{shown} has two columns named {twice[0]!r}; rename one")
    lists = frozenset(name.partition(":")[0] for name in header if fmt == "inter" and name.endswith("_seq"))
    return Part(shown, columns, file, "csv", separator, skipped + (form.columns is None), form.encoding, lists)


def _fields(line: str, separator: str) -> list[str]:
    """Split a line at a separator."""
    if separator in QUOTING:
        with suppress(csv.Error):
            return next(csv.reader([line], delimiter=separator), [])
    return line.rstrip("\r\n").split(separator)


def _detect(line: str, usual: str, columns: Sequence[str] | None) -> str:
    """The separator of a first line: the usual one where it splits it, else the one that gives most fields.

    Where the columns are known, the first that gives as many fields.
    """
    fields = {separator: len(_fields(line, separator)) for separator in dict.fromkeys((usual, *SEPARATORS))}
    if columns is not None:
        return next((separator for separator, n in fields.items() if n == len(columns)), usual)
    return usual if fields[usual] > 1 else max(fields, key=lambda separator: fields[separator])
