"""Copies of what cannot be read where it is: standard input, another encoding, rows without the torn ones.

They lie in a private folder of the system's temporary directory, which goes when the process ends; folders of processes
that were killed go when the next one makes its own.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from itertools import count
from pathlib import Path
from typing import BinaryIO

from dpaa.errors import InputError, reason

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

PREFIX = "dpaa-input-"
_numbers = count()


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """This process's own, locked as long as it lives."""
    _remove_abandoned(Path(tempfile.gettempdir()))
    while True:
        folder = tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True)
        _lock(Path(folder.name), wait=True)
        if Path(folder.name).exists():  # else somebody took it for abandoned before it was locked
            return folder


def _lock(folder: Path, wait: bool = False) -> int | None:
    """A handle that holds this user's folder; nothing where another process does, or where folders have no locks."""
    if fcntl is None:
        return None
    handle = None
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        if os.fstat(handle).st_uid == os.geteuid():
            fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            return handle
    except OSError:
        pass
    if handle is not None:
        os.close(handle)
    return None


def _remove_abandoned(place: Path) -> None:
    """Folders whose processes had no time to tidy up."""
    with suppress(OSError):
        for folder in place.glob(f"{PREFIX}*"):
            handle = _lock(folder)
            if handle is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(handle)


def scratch_file(name: str, write: Callable[[BinaryIO], object]) -> Path:
    """A new file with what `write` puts into it."""
    try:
        file = Path(_folder().name) / f"{next(_numbers)}"
        with file.open("xb") as stream:
            write(stream)
    except OSError as error:
        raise InputError(
            f"cannot copy {name} to {tempfile.gettempdir()} ({reason(error)}); make room there, or set TMPDIR"
        ) from None
    return file


@contextmanager
def called(path: Path, name: str) -> Iterator[None]:
    """A sentence about a copy is one about what it is a copy of."""
    try:
        yield
    except InputError as error:
        if str(path) == name:
            raise
        raise InputError(str(error).replace(str(path), name)) from None
