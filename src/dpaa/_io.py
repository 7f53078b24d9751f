"""Files: the one module that bounds what is read, and that writes whole or not at all.

Reading.  Only regular files are read (a pipe would hang, a device never ends), never more of them than the caller
allows, counted while reading; JSON has no numbers that a float cannot hold.

Writing.  A file or folder is made in a staging folder beside its target: new, under a random name, for this process
alone, so that nothing that was planted in an untrusted run (a link under a name we would use) is ever followed.  It is
flushed to disk and replaces its target in one rename; a kill at any moment leaves the old or the new one, whole.  Each
staging folder is held by a lock that ends with its process, however it ends: the next process that writes there removes
what a killed one left.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import hashlib
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import Any

from dpaa._text import json_text, parse_json
from dpaa.errors import InputError, reason

Content = str | bytes | Callable[[Path], object]
"""Of a file: itself, or what writes it to a path."""

SMALL_JSON, LARGE_JSON = 10_000_000, 50_000_000
"""Bytes of a config or manifest (ours have a few thousand), and of a comparison, a history or a result."""
STAGING, HOLD = ".dpaa-", ".lock"
"""Beginning of the names of staging folders, and the lock file in them."""

# ---------------------------------------------------------------------- reading


def open_regular(path: str | Path) -> BufferedReader:
    """Open a file for reading; what is no regular file is refused, without waiting for it."""
    file = Path(path)
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"there is no file {file}; check the path") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{file} cannot be read ({reason(error)}); check the path and its permissions") from None
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            raise InputError(f"{file} is a folder; name a file in it")
        if not stat.S_ISREG(mode):
            raise InputError(f"{file} is a pipe or device; write its content to a file and name that")
        return os.fdopen(handle, "rb")
    except BaseException:
        with suppress(OSError):
            os.close(handle)
        raise


def check_regular(path: str | Path) -> int:
    """Refuse what is missing, no regular file or unreadable, for readers that open it themselves; returns its size."""
    with open_regular(path) as file:
        return os.fstat(file.fileno()).st_size


def read_bytes(path: str | Path, most: int, whole: bool = True) -> bytes:
    """Read a regular file of bounded size.

    Parameters
    ----------
    path : of the file
    most : bytes
    whole : whether a larger file is refused instead of read in part
    """
    with open_regular(path) as file:
        try:
            content = file.read(most + 1)
        except OSError as error:
            raise InputError(f"{path} cannot be read ({reason(error)}); check the file") from None
    if whole and len(content) > most:
        raise InputError(f"{path} is larger than {most / 1e6:g} MB, more than such a file can need; check the name")
    return content


def read_text(path: str | Path, most: int) -> str:
    """Read a file of at most so many bytes as UTF-8 text."""
    try:
        return read_bytes(path, most).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text; save it in UTF-8") from None


def read_json(path: str | Path, most: int, remedy: str) -> dict[str, Any]:
    """Read the JSON object in a file of at most so many bytes; anything else is refused with the remedy."""
    try:
        content = parse_json(read_bytes(path, most))
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"{path} is not readable JSON ({reason(error)}); {remedy}") from None
    if not isinstance(content, dict):
        raise InputError(f"{path} does not hold a JSON object; {remedy}")
    return content


def as_json(content: Any, indent: int = 2) -> str:
    """The text of a JSON file."""
    return json_text(content, indent) + "\n"


def digest(path: str | Path) -> str:
    """SHA-256 of a regular file."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# ---------------------------------------------------------------------- targets


def settled(path: str | Path) -> Path:
    """The absolute path without links, `.` and `..`."""
    if not str(path):
        raise InputError("an empty path names nothing; name a file or folder")
    check_text(path)
    try:
        return Path(path).absolute().resolve()
    except (OSError, RuntimeError, ValueError) as error:  # a circle of links, a name with a null byte
        raise InputError(f"{path} is no usable path ({reason(error)}); name another") from None


def check_text(path: str | Path) -> None:
    """Refuse a path of bytes that are no text, which polars and JSON have no name for."""
    try:
        str(path).encode("utf-8")
    except UnicodeEncodeError:
        raise InputError(f"the path {str(path)!r} is not UTF-8 text; rename the file or folder") from None


def same_place(one: str | Path, other: str | Path) -> bool:
    """Whether two paths lead to one file or folder; an unusable path leads nowhere."""
    try:
        return settled(one) == settled(other)
    except InputError:
        return False


def check_within(path: Path, home: Path) -> Path:
    """The path itself; refused where links lead it out of a folder, which may be untrusted."""
    if not settled(path).is_relative_to(settled(home)):
        raise InputError(f"{_shown(path)} is a link that leads out of {_shown(home)}; remove it and call again")
    return path


def check_folder_name(path: str | Path) -> Path:
    """`settled`, and refused if a folder could not be replaced there: the root, or the current folder."""
    target = settled(path)
    _check_link(path)
    here = Path.cwd()
    if not target.name or target in (here, *here.parents):
        raise InputError(f"{str(path)!r} is the current folder, one above it or the root; name a folder of its own")
    return target


def _check_link(path: str | Path) -> None:
    """A link to nowhere would create something where nobody expects it."""
    if Path(path).is_symlink() and not Path(path).exists():
        raise InputError(f"{path} is a link to {Path(path).readlink()}, which is not there; remove the link first")


def check_file_target(
    path: str | Path, endings: Sequence[str], what: str, *, overwrite: bool = True, make_folders: bool = False
) -> None:
    """Refuse, before any work, a file that could not be written.

    Parameters
    ----------
    path : of the file
    endings : allowed ones, with their dots
    what : is written to it, for the message
    overwrite : whether it may exist
    make_folders : whether its folder may be missing
    """
    file = Path(path)
    if file.is_dir():
        raise InputError(f"{file} is a folder; name a file")
    if file.suffix.lower() not in endings:
        ending = f"the ending {file.suffix!r}" if file.suffix else "no ending"
        raise InputError(f"{file} has {ending}; {what} is written to {' or '.join(endings)}")
    target = settled(file)
    _check_link(file)
    if target.exists() and not overwrite:
        raise InputError(f"{file} already exists; pass --overwrite or name another file")
    around = next(folder for folder in target.parents if folder.exists()) if make_folders else target.parent
    if not around.is_dir():
        missing = f"{_shown(around)} is a file" if around.exists() else f"there is no folder {file.parent}"
        raise InputError(f"cannot write {file} ({missing}); make the folder first or name another file")


def missing_folders(folder: Path) -> list[Path]:
    """The parents that do not exist yet, the innermost first."""
    around = settled(folder.parent)
    return [parent for parent in (around, *around.parents) if not parent.exists()]


def remove_empty(folders: Sequence[Path]) -> None:
    """Remove folders that were made for something that came to nothing; filled ones stay."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


# ---------------------------------------------------------------------- writing


def write_file(target: str | Path, content: Content, remedy: str, *, make_folders: bool = False) -> None:
    """Write a file whole or not at all.

    Links to folders on the way are followed; a link under the name of the file itself is replaced.

    Parameters
    ----------
    target : the file
    content : its content, or a function that is called with the path to write to
    remedy : of the `InputError` where it cannot be written (disk full, no permission)
    make_folders : whether missing parents are made
    """
    target = settled(Path(target).parent) / Path(target).name
    made = missing_folders(target) if make_folders else []
    try:
        with _write_errors(target, remedy):
            for folder in reversed(made):
                folder.mkdir(exist_ok=True)
        write_files(target.parent, {target.name: content}, remedy)
    except BaseException:
        remove_empty(made)
        raise


def write_files(folder: Path, contents: Mapping[str, Content], remedy: str) -> None:
    """Write several files of a folder, as `write_file` does: all are made before the first replaces its target."""
    with _write_errors(folder / ", ".join(contents), remedy), staging(folder) as beside:
        for name, content in contents.items():
            write_into(beside, name, content)
            _flush(beside / name)
        for name in contents:
            (beside / name).replace(folder / name)
        _flush(folder)


def write_into(folder: Path, name: str, content: Content) -> None:
    """Write a file of a staging folder, as readable as any other file of the user's."""
    file = folder / name
    if callable(content):
        content(file)
    else:
        file.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    file.chmod(0o666 & ~_umask())  # some writers make private files


@contextmanager
def whole_folder(target: Path, remedy: str) -> Iterator[Path]:
    """A new folder to fill, which replaces the target in one rename when all went well; else the old one stays.

    Parameters
    ----------
    target : settled; its parents are made
    remedy : of the `InputError` where it cannot be written
    """
    made = missing_folders(target)
    try:
        with _write_errors(target, remedy):
            target.parent.mkdir(parents=True, exist_ok=True)
            with staging(target.parent) as beside:
                fresh = beside / "fresh"
                fresh.mkdir()
                yield fresh
                put_in_place(fresh, target)
    except BaseException:
        remove_empty(made)
        raise


def put_in_place(fresh: Path, target: Path) -> None:
    """Replace a folder (or none) by another, in one rename; the old one is `fresh` afterwards, or gone.

    Where the file system cannot exchange two names, the old folder is moved away first, into the staging folder.
    """
    for file in [*fresh.rglob("*"), fresh]:
        _flush(file)
    fresh.chmod(0o777 & ~_umask())
    if target.exists() and not _exchange(fresh, target):
        with staging(target.parent) as beside:
            target.rename(beside / "old")
            fresh.rename(target)
    elif not target.exists():
        fresh.rename(target)
    _flush(target.parent)


def append_line(file: Path, line: str, remedy: str) -> None:
    """Add a line to a file of ours; a link under its name is not followed."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
    with _write_errors(file, remedy), os.fdopen(os.open(file, flags, 0o666), "a", encoding="utf-8") as opened:
        opened.write(line + "\n")


def own_folder(folder: Path, remedy: str) -> Path:
    """A folder inside a folder of ours, made if need be; a link under its name is not followed."""
    if folder.is_symlink():
        raise InputError(f"{folder} is a link to somewhere else, where nothing is written; remove it and call again")
    with _write_errors(folder, remedy):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def remove_folder(folder: Path) -> None:
    """Remove a folder of ours and what is in it; of a link, the link alone.

    It loses its name in one step: a kill on the way never leaves a part of it that looks like something else.
    """
    if folder.is_symlink():
        folder.unlink(missing_ok=True)
    elif folder.is_dir():
        with suppress(OSError), staging(folder.parent) as beside:
            folder.rename(beside / "old")
        shutil.rmtree(folder, ignore_errors=True)  # where it could not be moved


@contextmanager
def _write_errors(target: Path, remedy: str) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except _failures() as error:
        raise InputError(f"cannot write {_shown(target)} ({reason(error)}); {remedy}") from None


def _failures() -> tuple[type[BaseException], ...]:
    """What a writer may raise when the disk is full: each library has its own."""
    failures: list[type[BaseException]] = [OSError]
    if "polars" in sys.modules:
        import polars as pl

        failures += [pl.exceptions.PolarsError, pl.exceptions.PanicException]
    if "safetensors" in sys.modules:
        from safetensors import SafetensorError

        failures.append(SafetensorError)
    return tuple(failures)


def _shown(path: Path) -> Path:
    """As a user would name it: relative to the current folder, if it is below."""
    with suppress(ValueError, OSError):
        return path.relative_to(Path.cwd())
    return path


def _flush(path: Path) -> None:
    """Make a file, or the names in a folder, durable."""
    if path.is_symlink():
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    """Permissions that the user's new files do not get; the system only tells them when they are set."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two names in one step; False where the system cannot."""
    libc = ctypes.CDLL(None, use_errno=True)
    first, second = os.fsencode(one), os.fsencode(other)
    if sys.platform == "darwin":
        done = libc.renamex_np(first, second, 2)  # RENAME_SWAP
    elif hasattr(libc, "renameat2"):
        done = libc.renameat2(-100, first, -100, second, 2)  # AT_FDCWD, RENAME_EXCHANGE
    else:
        return False
    if done == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM):
        return False
    raise OSError(number, os.strerror(number), str(other))


# ---------------------------------------------------------------------- staging folders


_swept: set[Path] = set()


@contextmanager
def staging(parent: Path) -> Iterator[Path]:
    """A private folder in `parent`, removed at the end; those of processes that were killed are removed first."""
    if parent not in _swept:
        sweep(parent)
        _swept.add(parent)
    folder, handle = _held_folder(parent, STAGING)
    with ExitStack() as hold:
        hold.callback(os.close, handle)
        yield Path(hold.enter_context(folder))


def temporary_folder(prefix: str) -> tempfile.TemporaryDirectory[str]:
    """A staging folder in the system's temporary directory, held as long as this process lives.

    Parameters
    ----------
    prefix : of its name; folders of killed processes with the same one are removed
    """
    parent = Path(tempfile.gettempdir())
    sweep(parent, prefix)
    return _held_folder(parent, prefix)[0]


def _held_folder(parent: Path, prefix: str) -> tuple[tempfile.TemporaryDirectory[str], int]:
    """A new private folder and the handle of its lock: once that is closed, the folder counts as abandoned."""
    while True:
        folder = tempfile.TemporaryDirectory(prefix=prefix, dir=parent, ignore_cleanup_errors=True)
        try:
            return folder, _acquired(Path(folder.name) / HOLD, wait=True)
        except BaseException as error:
            folder.cleanup()
            if not isinstance(error, FileNotFoundError):  # else it was swept in the moment before it was locked
                raise


def sweep(parent: Path, prefix: str = STAGING) -> None:
    """Remove the staging folders in a folder whose processes are gone."""
    with suppress(OSError):
        for left in parent.glob(f"{prefix}*"):
            if is_staging(left, prefix) and not held(left / HOLD):
                shutil.rmtree(left, ignore_errors=True)


def is_staging(path: Path, prefix: str = STAGING) -> bool:
    """Whether this is a staging folder of ours, and not something of the user's with such a name.

    Parameters
    ----------
    path : a file or folder; a link is none of ours
    prefix : of its name

    Returns
    -------
    By its whole name and the lock file in it; one that was not locked yet is empty
    """
    if not re.fullmatch(rf"{re.escape(prefix)}(new-)?[a-z0-9_]{{8,12}}", path.name) or path.is_symlink():
        return False
    try:
        return path.stat().st_uid == os.geteuid() and ((path / HOLD).exists() or not any(path.iterdir()))
    except OSError:  # no folder, or gone by now
        return False


# ---------------------------------------------------------------------- one process at a time


@contextmanager
def locked(path: Path, wait: bool = False) -> Iterator[None]:
    """Hold a lock file, which exists while it is held and ends with its process, however that ends.

    Parameters
    ----------
    path : of the lock file, which is removed at the end
    wait : for another holder, who is refused in one sentence otherwise
    """
    handle = _acquired(path, wait)
    try:
        yield
    finally:
        remove_lock(path)
        os.close(handle)


def lock_of(target: Path) -> Path:
    """The lock file of a folder that is written, beside it."""
    return target.parent / f".{target.name}.lock"


def remove_lock(path: Path) -> None:
    """Remove a lock file; it need not exist."""
    with suppress(OSError):
        path.unlink(missing_ok=True)


def held(path: Path) -> bool:
    """Whether a living process holds this lock file; one that does not exist is held by nobody."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def _acquired(path: Path, wait: bool) -> int:
    """The handle of a locked file, which is open for writing because network file systems lock no other."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            with suppress(OSError):
                if os.path.samestat(os.fstat(handle), path.stat()):
                    return handle
        except BlockingIOError:
            os.close(handle)
            what = _shown(path.parent / path.name.removeprefix(".").removesuffix(".lock"))
            raise InputError(f"{what} is in use by another process; wait for it or choose another folder") from None
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # removed by its last holder: lock the file that is there now
