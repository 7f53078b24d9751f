"""Files: the one place that bounds what is read, and that writes whole or not at all.

Reading.  Only regular files are read (a pipe would hang, a device never ends), never more of them than the caller
allows, counted while reading; JSON has no numbers that a float cannot hold.

Writing.  A file or folder is made in a staging folder beside its target: new, under a random name, for this process
alone, so that nothing a stranger planted in a run (a link under a name we would use) is ever followed.  It is flushed
to disk and takes its target's place in one rename; a kill at any moment leaves the old or the new one, whole.  The
staging folder is held by a lock that ends with its process, however it ends: what a killed process left is swept away
by the next that writes there, and what an interrupt left by the interrupted process when it ends.
"""

from __future__ import annotations

import atexit
import ctypes
import errno
import hashlib
import os
import re
import secrets
import shutil
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import Any

from dpaa.errors import InputError, reason
from dpaa.text import json_text, parse_json

Content = str | bytes | Callable[[Path], object]
"""Of a file: itself, or what writes it to a path."""


try:
    import fcntl
except ImportError:  # pragma: no cover  # not on Windows, which we do not support; imports should still work
    fcntl = None  # type: ignore[assignment]

SMALL_JSON, LARGE_JSON = 10_000_000, 50_000_000
"""Bytes of a config or manifest (ours have a few thousand), and of a comparison, a history or a result."""
STAGING, NASCENT, HOLD = ".dpaa-", ".dpaa-new-", ".lock"
"""Beginnings of the names of staging folders: in use, and not yet locked; the lock file in them."""
STAGED = re.compile(r"\.dpaa-(new-)?[0-9a-f]{12}")
"""A whole name of a staging folder."""
MARK = b"lock of dpaa\n"
"""Content of our lock files: whatever else has such a name is the user's, and is never removed."""
REPLACED = ".replaced"
"""Ending of the hidden folder in which an old folder waits where two names cannot be exchanged in one step."""

# ---------------------------------------------------------------------- reading


def open_regular(path: str | Path) -> BufferedReader:
    """A file opened for reading; what is no regular file is refused, without waiting for it."""
    file = Path(path)
    try:
        handle = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
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
    """Refuse what is missing, no regular file or unreadable, for readers that open it themselves.  Returns its size."""
    with open_regular(path) as file:
        return os.fstat(file.fileno()).st_size


def read_bytes(path: str | Path, most: int, whole: bool = True) -> bytes:
    """The content of a regular file of at most so many bytes; of a larger one its beginning, unless `whole`."""
    with open_regular(path) as file:
        try:
            content = file.read(most + 1)
        except OSError as error:
            raise InputError(f"{path} cannot be read ({reason(error)}); check the file") from None
    if whole and len(content) > most:
        raise InputError(f"{path} is larger than {most / 1e6:g} MB, more than such a file can need; check the name")
    return content


def read_text(path: str | Path, most: int) -> str:
    """The same as UTF-8 text."""
    try:
        return read_bytes(path, most).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text; save it in UTF-8") from None


def read_json(path: str | Path, most: int, remedy: str) -> dict[str, Any]:
    """The JSON object in a file; anything else ends in a sentence with the remedy."""
    try:
        content = parse_json(read_bytes(path, most))
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is not readable JSON ({reason(error)}); {remedy}") from None
    if not isinstance(content, dict):
        raise InputError(f"{path} does not hold a JSON object; {remedy}")
    return content


def as_json(content: Any, indent: int = 2) -> str:
    """Text of a JSON file."""
    return json_text(content, indent) + "\n"


def digest(path: str | Path) -> str:
    """SHA-256 of a regular file."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# ---------------------------------------------------------------------- targets


def settled(path: str | Path) -> Path:
    """The path without links, `.` and `..`; a folder whose replacement was cut off half-way is put back."""
    target = _resolved(path)
    waiting = _waiting(target)
    if target.name and not target.exists() and _waits(waiting):
        with suppress(OSError):
            (waiting / "old").rename(target)
            shutil.rmtree(waiting)
    return target


def _resolved(path: str | Path) -> Path:
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
    """Whether two paths lead to one file or folder; a path that is none (a stranger's) leads nowhere."""
    try:
        return _resolved(one) == _resolved(other)
    except InputError:
        return False


def check_within(path: Path, home: Path) -> Path:
    """The path itself; refused where links lead it out of a folder that a stranger may have filled."""
    if not settled(path).is_relative_to(settled(home)):
        raise InputError(f"{_shown(path)} is a link that leads out of {_shown(home)}; remove it and call again")
    return path


def check_folder_name(path: str | Path) -> Path:
    """`settled`, and refused if a folder could not be replaced there: the root, or where we stand."""
    target = settled(path)
    _check_link(path)
    here = Path.cwd() if str(path) else None
    if not target.name or here == target or (here is not None and target in here.parents):
        raise InputError(f"{str(path)!r} is the current folder, one above it or the root; name a folder of its own")
    return target


def check_replaceable(target: Path, shown: str | Path) -> None:
    """Refuse, before any work, a filled folder that no rename can replace.

    That is a mount point, or another user's folder in a sticky directory.  The system is asked by `rmdir`, which checks
    both before it finds that the folder is not empty; a bind mount cannot be found with `os.path.ismount`.

    Parameters
    ----------
    target
        The folder, settled; one without any file is not asked about.
    shown
        The folder as the user named it.
    """
    if not any(target.iterdir()):
        return
    try:
        target.rmdir()
    except OSError as error:
        if error.errno in (errno.EBUSY, errno.EPERM):
            raise InputError(
                f"{shown} cannot be replaced ({reason(error)}: it is a mount point, or another user's folder in a "
                "sticky directory); choose another folder with --out"
            ) from None


def _check_link(path: str | Path) -> None:
    """A link to nowhere would let us make something where nobody expects it."""
    if Path(path).is_symlink() and not Path(path).exists():
        raise InputError(f"{path} is a link to {Path(path).readlink()}, which is not there; remove the link first")


def check_file_target(
    path: str | Path, endings: Sequence[str], what: str, *, overwrite: bool = True, make_folders: bool = False
) -> None:
    """Refuse, before any work, a file that could not be written."""
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
    """The parents that are yet to be made, the innermost first."""
    around = settled(folder.parent)
    return [parent for parent in (around, *around.parents) if not parent.exists()]


def remove_empty(folders: Sequence[Path]) -> None:
    """Folders that were made for something that came to nothing."""
    for folder in folders:
        with suppress(OSError):  # not empty: somebody else works there
            folder.rmdir()


# ---------------------------------------------------------------------- writing


def write_file(target: str | Path, content: Content, remedy: str, *, make_folders: bool = False) -> None:
    """Write a file whole or not at all; a function is called with the path to write to.

    What cannot be written (no room, no permission) is an `InputError` with this remedy.  Links to folders on the way
    are followed; a link under the name of the file itself is replaced.
    """
    target = settled(Path(target).parent) / Path(target).name
    made = missing_folders(target) if make_folders else []
    try:
        with _in_words(target, remedy):
            for folder in reversed(made):
                folder.mkdir(exist_ok=True)
        write_files(target.parent, {target.name: content}, remedy)
    except BaseException:
        remove_empty(made)
        raise


def write_files(folder: Path, contents: Mapping[str, Content], remedy: str) -> None:
    """Write several files of a folder: all are made before the first takes its place."""
    names = ", ".join(contents)
    with _in_words(folder / names, remedy), staging(folder) as beside:
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
    """A new folder to fill; when all went well it takes the target's place, in one rename.

    `target` is settled, and its parents are made.  Whatever goes wrong, what was there before stays.
    """
    made = missing_folders(target)
    try:
        with _in_words(target, remedy):
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
    """Let a folder take the place of another (or of none), in one rename; the old one is `fresh` afterwards, or gone.

    Where the system cannot exchange two names, the old folder waits under a hidden name meanwhile, from where
    `settled` brings it back.
    """
    for file in [*fresh.rglob("*"), fresh]:
        _flush(file)
    fresh.chmod(0o777 & ~_umask())
    if not target.exists():
        fresh.rename(target)
    elif not _exchange(fresh, target):
        waiting = _waiting(target)
        if _waits(waiting):  # of a process that was killed before it removed it
            remove_folder(waiting)
        waiting.mkdir(exist_ok=True)
        if any(waiting.iterdir()):
            raise FileExistsError(errno.EEXIST, f"{waiting} is in the way", str(waiting))
        write_into(waiting, HOLD, MARK)
        target.rename(waiting / "old")
        fresh.rename(target)
        remove_folder(waiting)
    _flush(target.parent)


def append_line(file: Path, line: str, remedy: str) -> None:
    """Add a line to a file of ours; a link in its place is not followed."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    with _in_words(file, remedy), os.fdopen(os.open(file, flags, 0o666), "a", encoding="utf-8") as opened:
        opened.write(line + "\n")


def own_folder(folder: Path, remedy: str) -> Path:
    """A folder inside a folder of ours, made if need be; a link in its place is not followed."""
    if folder.is_symlink():
        raise InputError(f"{folder} is a link to somewhere else, where nothing is written; remove it and call again")
    with _in_words(folder, remedy):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def remove_folder(folder: Path) -> None:
    """Remove a folder of ours and what is in it; of a link, the link alone.

    It leaves its name in one step: a kill on the way never leaves a part of it that looks like something else.
    """
    if folder.is_symlink():
        folder.unlink(missing_ok=True)
    elif folder.is_dir():
        with suppress(OSError), staging(folder.parent) as beside:
            folder.rename(beside / "old")
        shutil.rmtree(folder, ignore_errors=True)  # where it could not be moved


_swept: set[Path] = set()
_staged: set[Path] = set()
"""Names of staging folders of this process, from before they are made until they are gone."""


@contextmanager
def staging(parent: Path) -> Iterator[Path]:
    """A private folder in `parent`, removed at the end; those of processes that were killed are removed first."""
    if parent not in _swept:
        sweep(parent)
        _swept.add(parent)
    with ExitStack() as hold:
        while True:
            token = secrets.token_hex(6)
            nascent, folder = parent / f"{NASCENT}{token}", parent / f"{STAGING}{token}"
            _staged.update((nascent, folder))
            hold.callback(_unstage, nascent, folder)
            nascent.mkdir(mode=0o700)
            try:
                hold.callback(os.close, _lock(nascent / HOLD, wait=True))
                nascent.rename(folder)
            except FileNotFoundError:  # swept in the moment before it was locked: again
                continue
            break
        yield folder


def _unstage(*folders: Path) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
        _staged.discard(folder)


@atexit.register
def _unstage_all() -> None:
    """What is left where an interrupt came while a staging folder was made or removed."""
    _unstage(*list(_staged))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_staged.clear)  # those of the parent are the parent's


def sweep(parent: Path) -> None:
    """Remove staging folders whose process is gone; one that is swept before it is locked is made again."""
    for left in parent.glob(f"{STAGING}*"):
        if is_staging(left) and not held(left / HOLD):
            shutil.rmtree(left, ignore_errors=True)


def is_staging(path: Path) -> bool:
    """Whether this is a staging folder of ours, and not something of the user's with such a name.

    Parameters
    ----------
    path
        A file or folder; a link is none of ours.

    Returns
    -------
    bool
        By its whole name and the lock file in it; one that was not marked yet has at most an empty one.
    """
    if not STAGED.fullmatch(path.name) or path.is_symlink():
        return False
    try:
        if is_lock(path / HOLD):
            return True
        inside = list(path.iterdir())  # a kill may come before the lock file is there, or before it is marked
        return path.name.startswith(NASCENT) and all(one.name == HOLD and not one.stat().st_size for one in inside)
    except OSError:  # no folder, another user's, or gone by now
        return False


@contextmanager
def _in_words(target: Path, remedy: str) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except _failures() as error:
        raise InputError(f"cannot write {_shown(target)} ({reason(error)}); {remedy}") from None


def _failures() -> tuple[type[BaseException], ...]:
    """What a writer may raise when there is no room: each library has its own."""
    found: list[type[BaseException]] = [OSError]
    if "polars" in sys.modules:
        import polars as pl

        found += [pl.exceptions.PolarsError, pl.exceptions.PanicException]
    if "safetensors" in sys.modules:
        from safetensors import SafetensorError

        found.append(SafetensorError)
    return tuple(found)


def _shown(path: Path) -> Path:
    """As a user would name it: from where we stand, if it is below."""
    with suppress(ValueError, OSError):
        return path.relative_to(Path.cwd())
    return path


def _waiting(target: Path) -> Path:
    return target.parent / f".{target.name}{REPLACED}"


def _waits(waiting: Path) -> bool:
    """Whether this is such a folder of ours."""
    return waiting.is_dir() and not waiting.is_symlink() and is_lock(waiting / HOLD)


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
    """What the user's new files may not be; it can only be read by setting it."""
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


# ---------------------------------------------------------------------- one process at a time


@contextmanager
def locked(path: Path, wait: bool = False) -> Iterator[None]:
    """Hold a lock file, which exists while it is held; another holder is waited for, or refused in one sentence.

    The lock ends with its process, however it ends.  A file of the user's that has the name is held and stays.
    """
    while True:
        handle = _lock(path, wait)
        if _is(handle, path):
            break
        os.close(handle)  # removed by its last holder: take what is there now
    try:
        yield
    finally:
        remove_lock(path)
        os.close(handle)


def remove_lock(path: Path) -> None:
    """Remove a lock file of ours, and nothing else that has its name.

    Parameters
    ----------
    path
        The file; it need not exist.
    """
    if is_lock(path):
        with suppress(OSError):
            path.unlink(missing_ok=True)


def is_lock(path: Path) -> bool:
    """Whether this is a lock file of ours.

    Parameters
    ----------
    path
        The file; a link is none of ours, nor is what is not there.

    Returns
    -------
    bool
        By its content.
    """
    try:
        return not path.is_symlink() and read_bytes(path, len(MARK), whole=False) == MARK
    except InputError:
        return False


def lock_of(target: Path) -> Path:
    """The lock file of a folder that is written, beside it."""
    return target.parent / f".{target.name}.lock"


def _lock(path: Path, wait: bool) -> int:
    """An open, locked file; it is opened for writing because network file systems lock no other."""
    handle = _opened_lock(path)
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        what = _shown(path.parent / path.name.removeprefix(".").removesuffix(".lock"))
        raise InputError(f"{what} is in use by another process; wait for it or choose another folder") from None
    except BaseException:
        os.close(handle)
        raise
    return handle


def _opened_lock(path: Path) -> int:
    """A lock file opened; a new one says that it is ours, one that is there stays as it is."""
    flags = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0)
    while True:
        with suppress(FileExistsError):
            handle = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o644)
            break
        with suppress(FileNotFoundError):  # removed by its holder since
            return os.open(path, flags)
    try:
        os.write(handle, MARK)
    except BaseException:
        path.unlink(missing_ok=True)
        os.close(handle)
        raise
    return handle


def held(path: Path) -> bool:
    """Whether a living process holds this file with `locked`; one that is not there is held by nobody."""
    try:
        handle = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
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


def _is(handle: int, path: Path) -> bool:
    """Whether the name still stands for what was opened."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except OSError:
        return False
