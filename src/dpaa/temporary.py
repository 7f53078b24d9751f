"""Private folders in the system's temporary directory.

They go when the process ends.  Those of processes that were killed go when the next one makes a folder of the kind.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dpaa.errors import InputError, reason

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

MARK = ".dpaa-temporary"
"""A file in every such folder: others are never removed."""


def temporary_folder(prefix: str) -> tempfile.TemporaryDirectory[str]:
    """A folder of this process, locked as long as it lives."""
    _remove_abandoned(Path(tempfile.gettempdir()), prefix)
    folder = tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True)
    _lock(Path(folder.name), wait=True)
    os.close(os.open(Path(folder.name) / MARK, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))  # once it is locked
    return folder


@contextmanager
def enough_room(folder: Path, what: str) -> Iterator[None]:
    """Name the place and the remedy where the temporary directory is full.

    Parameters
    ----------
    folder
        The temporary folder that is written to; `tempfile.gettempdir` names another directory if its own is full.
    what
        What is written there.
    """
    try:
        yield
    except OSError as error:
        why = reason(error) if error.errno else "No space left on device"  # numpy counts items instead
        raise InputError(f"cannot prepare {what} in {folder.parent} ({why}); make room there, or set TMPDIR") from None


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


def _remove_abandoned(place: Path, prefix: str) -> None:
    """Folders whose processes had no time to tidy up; what the user has given such a name stays."""
    with suppress(OSError):
        for folder in place.glob(f"{prefix}{8 * '[a-z0-9_]'}"):  # a name that `tempfile` makes
            handle = _lock(folder)
            if handle is not None and not (folder / MARK).is_file():
                os.close(handle)
            elif handle is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(handle)
