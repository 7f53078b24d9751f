"""What people name as a log becomes one table: files, folders, patterns, `-` for standard input, URLs."""

from __future__ import annotations

import glob
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from dpaa._text import without_secrets
from dpaa.data.partitions import PartitionTable, columns_in_paths
from dpaa.data.remote import RemoteTable, is_url
from dpaa.data.scratch import scratch_file
from dpaa.data.several import SeveralTables
from dpaa.data.tables import BY_ENDING, FORMATS, Table, TextForm, ending_of, open_table
from dpaa.errors import InputError

STDIN = "-"
STDIN_NAME = "standard input"
PATTERN = "*?["
MOST_FILES = 100_000
OURS = {"dataset.json": "a prepared dataset already", "manifest.json": "a run", "config.json": "a run"}
"""Files that tell what a folder of ours is."""


def open_log(sources: Sequence[str | Path] | str | Path, fmt: str | None = None, form: TextForm | None = None) -> Table:
    """One table of all that is named, in the order of the names; files of a folder or pattern in that of theirs."""
    named = [sources] if isinstance(sources, str | Path) else list(sources)
    if not named:
        raise InputError("no file is named; name files, folders, patterns, URLs, or - for standard input")
    form = form or TextForm()
    parts = [part for one in named for part in _tables(one, fmt, form)]
    if len(parts) > 1:
        places = [part.name for part in parts]
        twice = next((place for place in places if places.count(place) > 1), None)
        if twice is not None:
            raise InputError(f"{twice} is named twice; its rows would be counted twice: name it once")
    return SeveralTables.of(parts)


def name_of(sources: Sequence[str | Path] | str | Path) -> str:
    """What a dataset is called that was made from these: after the first file or folder, without its endings."""
    first = str(sources if isinstance(sources, str | Path) else sources[0])
    if first == STDIN:
        return "stdin"
    path = urlsplit(first).path or urlsplit(first).netloc if is_url(first) else first
    last = next((part for part in reversed(Path(path).parts) if not set(PATTERN) & set(part)), path)
    return Path(last).name.partition(".")[0] or Path(last).name or "log"


def _tables(source: str | Path, fmt: str | None, form: TextForm) -> Iterator[Table]:
    text = str(source)
    if text == STDIN:
        yield open_table(_standard_input(), fmt, form, STDIN_NAME)
    elif isinstance(source, str) and is_url(text):
        yield _of_url(text, fmt, form)
    elif _is(Path(text).is_dir):
        files = _files_of(Path(text), fmt)
        for file, further in zip(files, columns_in_paths(Path(text), files), strict=True):
            yield PartitionTable.of(open_table(file, fmt, form), further)
    elif not _is(Path(text).exists) and set(PATTERN) & set(text):
        for file in _matching(text):
            yield from _tables(file, fmt, form)
    else:
        yield open_table(text, fmt, form)


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


def _of_url(url: str, fmt: str | None, form: TextForm) -> Table:
    parts = urlsplit(url)
    if parts.scheme == "file":
        return open_table(unquote(parts.path), fmt, form)
    found = fmt or BY_ENDING.get(ending_of(parts.path))
    if found is None:
        raise InputError(
            f"the ending of {without_secrets(url)} does not tell its format; pass --format with one of "
            f"{', '.join(FORMATS)}"
        )
    return RemoteTable.open(url, found, form)


@cache
def _standard_input() -> Path:
    """A copy of it, made once."""
    if sys.stdin is None or sys.stdin.isatty():
        raise InputError(
            "standard input is the keyboard; send a log to it, as in: zcat clicks.csv.gz | dpaa data log -"
        )
    return scratch_file(STDIN_NAME, lambda stream: shutil.copyfileobj(sys.stdin.buffer, stream))


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
