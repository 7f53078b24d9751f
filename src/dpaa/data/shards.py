"""Tables in shards: each call writes a part of the rows to one file; the folder is read as one table.

lists/_shards.json                    what all shards have in common
lists/part-00003-of-00016.parquet     the third of sixteen; whole, or not there
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from dpaa._io import LARGE_JSON, as_json, lock_of, locked, own_folder, read_json, resolve_path, write_file
from dpaa._text import json_text
from dpaa.errors import InputError

ABOUT, OF = "_shards.json", "number of shards"
PART = re.compile(r"part-(\d{5})-of-(\d{5})\..+")
REMEDY = "choose another folder with --out"


@dataclass(frozen=True)
class Shard:
    """One of several parts, from 1."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read `3/16`."""
        numbers = [int(number) for number in text.split("/") if re.fullmatch("[0-9]{1,5}", number)]
        if len(numbers) != 2 or not 1 <= numbers[0] <= numbers[1]:
            raise InputError(f"{text!r} is not a shard; write 3/16 for the third of sixteen")
        return cls(*numbers)

    def rows(self, n: int) -> slice:
        """Slice of n rows that is this shard; shards differ in size by one row at most."""
        return slice((self.number - 1) * n // self.of, self.number * n // self.of)

    def file(self, folder: Path, ending: str) -> Path:
        """Path of this shard in a folder."""
        return folder / f"part-{self.number:05}-of-{self.of:05}{ending}"

    def __str__(self) -> str:
        return f"shard {self.number} of {self.of}"


def join_folder(folder: Path, about: Mapping[str, Any]) -> None:
    """Make a folder of shards, or join that of others of the same call.

    Parameters
    ----------
    folder : one that holds anything else is refused
    about : what all shards have in common
    """
    home = resolve_path(folder)
    if home.is_file() or (home.exists() and not (home / ABOUT).exists() and any(home.glob("[!.]*"))):
        raise InputError(f"{folder} is a file or a folder that holds no shards; {REMEDY}")
    own_folder(home, REMEDY)
    # Of shards that begin at once, one writes what all have in common and the others compare.
    with locked(lock_of(home), wait=True):
        if not (home / ABOUT).exists():
            write_file(home / ABOUT, as_json(dict(about)), REMEDY)
        before = read_json(home / ABOUT, LARGE_JSON, REMEDY)
    # Compared by what was asked for: shards of two calls in one folder would look like one set of lists.
    if other := [name for name, value in about.items() if before.get(name) != value]:
        raise InputError(f"{folder} holds shards with another {other[0]}; {REMEDY}")


def check_complete(folder: Path) -> None:
    """Refuse a folder of shards of which some are missing."""
    if (folder / ABOUT).is_file():
        of = read_json(folder / ABOUT, LARGE_JSON, "make the shards again").get(OF)
        present = {int(match[1]) for file in folder.iterdir() if (match := PART.fullmatch(file.name))}
        missing = [number for number in range(1, of + 1) if number not in present] if isinstance(of, int) else []
        if missing:
            some = ", ".join(map(str, missing[:5]))
            raise InputError(f"{folder} lacks {len(missing)} of {of} shards ({some}); make them with --shard")


def digest_of(choice: Any) -> str:
    """Digest of options, lists and tables of ids: the same for the same ones.

    Parameters
    ----------
    choice : JSON values, Polars series and frames, and mappings of them
    """
    if isinstance(choice, pl.Series | pl.DataFrame):
        content = pl.DataFrame(choice).write_csv()
    elif isinstance(choice, Mapping):
        content = "\0".join(f"{name}\0{digest_of(choice[name])}" for name in sorted(choice))
    else:
        content = json_text(choice, indent=None)
    return hashlib.sha256(content.encode()).hexdigest()
