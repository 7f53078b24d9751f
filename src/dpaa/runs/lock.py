"""One process at a time: locks that end with their holder, however it ends."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dpaa.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

try:
    import fcntl
except ImportError:  # pragma: no cover  # not on Windows, which we do not support; imports should still work
    fcntl = None  # type: ignore[assignment]


@contextmanager
def locked(path: Path, wait: bool = False) -> Iterator[None]:
    """Hold a file or folder for this process; another holder is waited for, or refused in one sentence."""
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if fcntl is not None:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(f"{path} is in use by another process; wait for it or choose another folder") from None
        yield
    finally:
        os.close(handle)


def held(path: Path) -> bool:
    """Whether a living process holds this file with `locked`; one that is not there is held by nobody."""
    try:
        handle = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False
