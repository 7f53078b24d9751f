"""What may not happen: what a call may exit with, print, change and leave behind."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import unicodedata
from collections.abc import Iterable
from fnmatch import fnmatchcase as fnmatch
from pathlib import Path, PurePath

from .server import Outcome

MOST_MEMORY = 2_000_000_000
"""Bytes of a command on tiny data, whatever strangers put into its files."""
LONGEST_LINE = 4_000
"""Characters of an error: a sentence, not the file it complains of."""
HASHED = 64_000_000
"""Bytes of a file up to which its content is compared."""
RAW_WARNING = re.compile(r"^\S*\.py:\d+: \w*Warning", re.MULTILINE)

Tree = dict[str, str]
"""Path → what is there."""


def tree(folder: Path) -> Tree:
    """Every path below a folder: kind, and digest of the content or target of the link.  Links are not followed."""
    found: Tree = {}
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(place) / name
            found[os.path.relpath(path, folder)] = _content(path)
    return found


def _content(path: Path) -> str:
    about = path.lstat()
    if stat.S_ISLNK(about.st_mode):
        return f"link to {path.readlink()}"
    if not stat.S_ISREG(about.st_mode):
        return stat.filemode(about.st_mode)[0]
    if about.st_size > HASHED:
        return f"{about.st_size} bytes of {about.st_mtime_ns}"
    return hashlib.sha256(path.read_bytes()).hexdigest()


def changes(before: Tree, after: Tree, allowed: Iterable[str] = ()) -> list[str]:
    """What is new, gone or other, outside of the allowed places: patterns of paths, those that end with / of folders.

    Of a folder that came or went as a whole, only the folder is told.
    """
    places = tuple(allowed)
    found: dict[str, str] = {}
    for path in sorted({*before, *after}):
        if before.get(path) == after.get(path) or _within(path, places):
            continue
        word = "left behind" if path not in before else "lost" if path not in after else "altered"
        if word == "altered" or not any(found.get(str(parent)) == word for parent in PurePath(path).parents):
            found[path] = word
    return [f"{word}: {path}" for path, word in found.items()]


def _within(path: str, places: tuple[str, ...]) -> bool:
    return any(
        fnmatch(path, place.rstrip("/")) or (place.endswith("/") and fnmatch(path, f"{place}*")) for place in places
    )


def misbehaviour(said: Outcome, may_say_no: bool = False, interrupted: bool = False) -> list[str]:
    """What is wrong with how a call ended and with what it printed.

    `may_say_no`: exit code 1 is an answer (`--fail-if`).  `interrupted`: a signal was sent, so it may end by it.
    """
    found = []
    if said.stopped == "memory" or said.peak > MOST_MEMORY:
        found.append(f"memory: {said.peak / 1e9:.1f} GB")
    if said.stopped in ("idle", "cpu", "wall"):
        found.append(f"hang: stopped by the limit of {said.stopped} time")
    if said.orphans:
        found.append("orphans: processes lived on")
    text = said.out + said.err
    if "Traceback (most recent call last)" in text:
        found.append(f"traceback: {_exception(text)[:160]}")
    if "panicked at" in said.err:
        found.append("panic: a library's panic is printed")
    elif RAW_WARNING.search(said.err):
        found.append(f"warning: {RAW_WARNING.search(said.err)[0]}")  # type: ignore[index]
    if control := _control(text):
        found.append(f"control characters: {control} reach the terminal")
    allowed = {0, 2} | ({1} if may_say_no else set()) | ({130, 143, -2, -9, -15} if interrupted else set())
    if said.code not in allowed and not said.stopped and "traceback" not in " ".join(found):
        found.append(f"exit code: {said.code}, {_last_line(said.err)[:120]!r}")
    if said.code == 2:
        found += _sentence(said.err)
    return found


def _sentence(err: str) -> list[str]:
    lines = [line for line in err.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("error: ")]
    if len(errors) != 1 or lines[-1] != errors[0]:
        return [f"sentence: {len(errors)} lines begin with 'error: ', the last line is {_last_line(err)[:120]!r}"]
    if len(errors[0]) > LONGEST_LINE:
        return [f"sentence: {len(errors[0]):,} characters"]
    return []


def _exception(text: str) -> str:
    """What was raised, and the last place of the stack."""
    _, _, rest = text.partition("Traceback (most recent call last)")
    lines = rest.splitlines()[1:]
    raised = next((line for line in lines if line and not line.startswith((" ", "\t"))), "")
    places = [line.strip() for line in lines[: lines.index(raised) if raised else None] if line.startswith("  File ")]
    where = re.sub(r'File "[^"]*?([^"/]+)", line (\d+).*', r"\1:\2", places[-1]) if places else "?"
    return f"{raised} ({where})"


def _last_line(err: str) -> str:
    lines = [line for line in err.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _control(text: str) -> str:
    """Characters that a terminal obeys, and bytes that are no text, by name."""
    bad = {one for one in text if unicodedata.category(one) in ("Cc", "Cs") and one not in "\n\t"}
    return ", ".join(sorted(f"U+{ord(one):04X}" for one in bad)[:5])
