"""File access: bounded reads, and atomic writes.

Reading.  Only regular files are read (a pipe would hang, a device never ends), never more of them than the caller
allows, counted while reading; JSON has no numbers that a float cannot hold.

Writing.  A file or folder is made in a staging folder beside its target: new, under a random name, for this process
alone, so that nothing that was planted in an untrusted run (a link under a name we would use) is ever followed.  It is
flushed to disk and replaces its target in one rename; a kill at any moment leaves the old or the new one, whole.  Each
staging folder is held by a lock that ends with its process, however it ends: the next process that writes there removes
what a killed one left.
"""

import ctypes
import fcntl
import hashlib
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
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
    """Open a regular file for reading; anything else, such as a pipe, is refused without blocking.

    Parameters
    ----------
    path : of the file

    Returns
    -------
    the open file
    """
    try:
        # Non-blocking: to open a pipe would otherwise wait for whoever writes to it.
        opened = open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))  # noqa: SIM115
    except IsADirectoryError:
        raise InputError(f"{path} is a folder; name a file in it") from None
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"there is no file {path}; check the path") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read ({reason(error)}); check the path and its permissions") from None
    if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
        opened.close()
        raise InputError(f"{path} is a pipe or device; write its content to a file and name that")
    return opened


def check_regular(path: str | Path) -> int:
    """Check that a file is a readable regular file, for readers that open it themselves; returns its size."""
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
            # One byte more than is allowed: a size that was asked for beforehand may have changed by now.
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
    """Read the JSON object in a file.

    Parameters
    ----------
    path : of the file
    most : bytes
    remedy : of the message about a file that is larger, or no JSON object
    """
    content = read_bytes(path, most)
    try:
        parsed = parse_json(content)
    except ValueError as error:
        raise InputError(f"{path} is not readable JSON ({reason(error)}); {remedy}") from None
    if not isinstance(parsed, dict):
        raise InputError(f"{path} does not hold a JSON object; {remedy}")
    return parsed


def as_json(content: Any, indent: int = 2) -> str:
    """The text of a JSON file."""
    return json_text(content, indent) + "\n"


def digest(path: str | Path) -> str:
    """SHA-256 of a regular file."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# ---------------------------------------------------------------------- targets


def resolve_path(path: str | Path) -> Path:
    """Resolve a path: absolute, without links, `.` and `..`; one that cannot be used is refused.

    Parameters
    ----------
    path : of a file or folder, which need not exist
    """
    try:
        if str(path).encode("utf-8"):  # polars and JSON have no name for bytes that are no text
            return Path(path).absolute().resolve()
        why = "it is empty"
    except (OSError, RuntimeError, ValueError) as error:  # a circle of links, a name with a null byte
        why = reason(error)
    raise InputError(f"{str(path)!r} is no usable path ({why}); name another file or folder")


def check_within(path: Path, home: Path) -> Path:
    """Refuse a path that links lead out of a folder, which may be untrusted.

    Parameters
    ----------
    path : to check
    home : the folder

    Returns
    -------
    the path itself
    """
    if not resolve_path(path).is_relative_to(resolve_path(home)):
        raise InputError(f"{_shown(path)} is a link that leads out of {_shown(home)}; remove it and call again")
    return path


def check_folder_name(path: str | Path) -> Path:
    """Refuse, before any work, a folder that could not be replaced: the root, or the current folder.

    Parameters
    ----------
    path : of the folder

    Returns
    -------
    the resolved path
    """
    # To replace the current folder would leave the caller in one that has no name any more.
    target, here = _without_dangling_link(path), Path.cwd()
    if not target.name or target in (here, *here.parents):
        raise InputError(f"{str(path)!r} is the current folder, one above it or the root; name a folder of its own")
    return target


def _without_dangling_link(path: str | Path) -> Path:
    """Resolve a path and refuse a dangling link, which would create a file in an unexpected location."""
    target = resolve_path(path)
    if Path(path).is_symlink() and not target.exists():
        raise InputError(f"{path} is a link to {target}, which is not there; remove the link first")
    return target


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
    file, target = Path(path), _without_dangling_link(path)
    if target.is_dir():
        raise InputError(f"{file} is a folder; name a file")
    if file.suffix.lower() not in endings:
        ending = f"the ending {file.suffix!r}" if file.suffix else "no ending"
        raise InputError(f"{file} has {ending}; {what} is written to {' or '.join(endings)}")
    if target.exists() and not overwrite:
        raise InputError(f"{file} already exists; pass --overwrite or name another file")
    around = next(folder for folder in target.parents if folder.exists() or not make_folders)
    if not around.is_dir():
        raise InputError(f"cannot write {file} ({_shown(around)} is not a folder); create it or name another file")


def missing_folders(folder: Path) -> list[Path]:
    """The parents that do not exist yet, the innermost first."""
    around = resolve_path(folder.parent)
    return [parent for parent in (around, *around.parents) if not parent.exists()]


def remove_empty(folders: Sequence[Path]) -> None:
    """Remove folders that were created for an operation that failed; non-empty ones are kept."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


# ---------------------------------------------------------------------- writing


def write_file(target: str | Path, content: Content, remedy: str, *, make_folders: bool = False) -> None:
    """Write a file atomically.

    Links to folders on the way are followed; a link under the name of the file itself is replaced.

    Parameters
    ----------
    target : the file
    content : its content, or a function that is called with the path to write to
    remedy : of the `InputError` where it cannot be written (disk full, no permission)
    make_folders : whether missing parents are made
    """
    # The parent is resolved and the name is not: a link under the name is replaced, never written through.
    target = resolve_path(Path(target).parent) / Path(target).name
    with _write_errors(target, remedy), _parents(target) if make_folders else nullcontext():
        write_files(target.parent, {target.name: content}, remedy)


@contextmanager
def _parents(target: Path) -> Iterator[None]:
    """Make the missing parents of a file or folder; they are removed where it comes to nothing."""
    missing = missing_folders(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        remove_empty(missing)
        raise


def write_files(folder: Path, contents: Mapping[str, Content], remedy: str) -> None:
    """Write several files of a folder, as `write_file` does: all are made before the first replaces its target."""
    # All are made and flushed before the first is renamed: a full disk leaves the old files, not a mixture.
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
    """Provide a new folder that replaces the target in one rename on success; otherwise the old one is kept.

    Parameters
    ----------
    target : resolved; its parents are made
    remedy : of the `InputError` where it cannot be written
    """
    with _write_errors(target, remedy), _parents(target), staging(target.parent) as beside:
        fresh = beside / "fresh"
        fresh.mkdir()
        yield fresh
        put_in_place(fresh, target)


def put_in_place(fresh: Path, target: Path) -> None:
    """Replace a folder (or none) by another, in one rename; the old one is `fresh` afterwards, or gone.

    Where the file system cannot exchange two names, the old folder is moved away first, into the staging folder.
    """
    # Content first, the name last: after a power cut a new name must not lead to empty files.
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
    """Turn what writers raise when the disk is full into a sentence: each library has its own error."""
    try:
        yield
    # `BaseException`, because a panic of Polars is no `Exception`.
    except BaseException as error:
        if isinstance(error, OSError) or type(error).__module__.startswith(("polars", "pyo3_runtime", "safetensors")):
            raise InputError(f"cannot write {_shown(target)} ({reason(error)}); {remedy}") from None
        raise


def _shown(path: Path) -> Path:
    """Shorten a path for messages: relative to the current folder, if it is below."""
    with suppress(ValueError, OSError):
        return path.relative_to(Path.cwd())
    return path


def _flush(path: Path) -> None:
    """Make a file, or the names in a folder, durable."""
    if not path.is_symlink():
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _umask() -> int:
    """Read the permissions that the user's new files do not get, which the system returns only when they are set."""
    mask = os.umask(0)  # for a moment: what another thread makes meanwhile is readable by all
    os.umask(mask)
    return mask


def _exchange(path: Path, other: Path) -> bool:
    """Exchange two names in one step; False where the system cannot."""
    libc = ctypes.CDLL(None)
    first, second = os.fsencode(path), os.fsencode(other)
    if sys.platform == "darwin":
        return bool(libc.renamex_np(first, second, 2) == 0)  # RENAME_SWAP
    return hasattr(libc, "renameat2") and libc.renameat2(-100, first, -100, second, 2) == 0  # AT_FDCWD, RENAME_EXCHANGE


# ---------------------------------------------------------------------- staging folders


_swept: set[Path] = set()


@contextmanager
def staging(parent: Path) -> Iterator[Path]:
    """A private folder in `parent`, removed at the end; those of processes that were killed are removed first."""
    # Once per folder and process: to look for leftovers lists the whole folder, which may be large.
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
        with suppress(FileNotFoundError):  # swept in the moment before it was locked
            return folder, _acquired(Path(folder.name) / HOLD, wait=True)
        folder.cleanup()


def sweep(parent: Path, prefix: str = STAGING) -> None:
    """Remove the staging folders in a folder whose processes are gone."""
    for abandoned in parent.glob(f"{prefix}*"):
        with suppress(OSError, InputError), ExitStack() as stack:  # gone by now, or in use
            if is_staging(abandoned, prefix):
                # Held while it is removed: a process that has just made it waits, finds it gone and makes another.
                stack.callback(os.close, _acquired(abandoned / HOLD, wait=False))
                shutil.rmtree(abandoned, ignore_errors=True)


def is_staging(path: Path, prefix: str = STAGING) -> bool:
    """Whether this is a staging folder of dpaa, not a user's folder with a similar name.

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
    """Hold a lock file, which is released when its process ends in any way.

    Parameters
    ----------
    path : of the lock file, which is removed at the end
    wait : for another holder, who is refused in one sentence otherwise
    """
    handle = _acquired(path, wait)
    try:
        yield
    finally:
        # Removed while the lock is still held: who waits for it then finds another file under the name, and
        # locks that.
        with suppress(OSError):
            path.unlink(missing_ok=True)
        os.close(handle)


def lock_of(target: Path) -> Path:
    """The lock file of a folder that is written, beside it."""
    return target.parent / f".{target.name}.lock"


def _acquired(path: Path, wait: bool) -> int:
    """The handle of a locked file, which is open for writing because network file systems lock no other."""
    while True:
        with ExitStack() as stack:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
            stack.callback(os.close, handle)
            try:
                # `flock` and not `lockf`: it belongs to the open file, so two threads of one process
                # exclude each other as well.
                fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                what = _shown(path.parent / path.name.removeprefix(".").removesuffix(".lock"))
                raise InputError(f"{what} is in use by another process; wait for it or choose another folder") from None
            # The last holder may have removed it meanwhile: then lock the file that is there now.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), path.stat()):
                    stack.pop_all()
                    return handle
