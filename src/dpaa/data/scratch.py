"""Copies of what cannot be read where it is: standard input, another encoding, rows without the torn ones.

They lie in a temporary folder of the process.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from typing import BinaryIO

from dpaa._io import temporary_folder
from dpaa.errors import InputError, reason

_numbers = count()


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return temporary_folder("dpaa-input-")


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
def scratch_folder(name: str) -> Iterator[Path]:
    """A folder for a table that memory does not hold; it goes at the end."""
    try:
        with tempfile.TemporaryDirectory(prefix="pieces-", dir=_folder().name) as place:
            yield Path(place)
    except OSError as error:
        raise InputError(
            f"cannot prepare {name} in {tempfile.gettempdir()} ({reason(error)}); make room there, or set TMPDIR"
        ) from None


@contextmanager
def called(path: Path, name: str) -> Iterator[None]:
    """A sentence about a copy is one about what it is a copy of."""
    try:
        yield
    except InputError as error:
        if str(path) == name:
            raise
        raise type(error)(str(error).replace(str(path), name)) from None
