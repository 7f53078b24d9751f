"""Tables in shards: each a part of the rows in a file of its own, written by a call of its own, read as one folder.

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

from dpaa._io import LARGE_JSON, as_json, lock_of, locked, own_folder, read_json, settled, write_file
from dpaa._text import json_text
from dpaa.errors import InputError

ABOUT, OF = "_shards.json", "number of shards"
PART = re.compile(r"part-(\d{5})-of-(\d{5})\..+")
MOST = 99_999
REMEDY = "make room or choose another folder with --out"


@dataclass(frozen=True)
class Shard:
    """One of several parts, from 1."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """`3/16`."""
        found = re.fullmatch(r"\s*([0-9]{1,5})\s*/\s*([0-9]{1,5})\s*", text)
        number, of = (int(found[1]), int(found[2])) if found else (0, 0)
        if not 1 <= number <= of <= MOST:
            raise InputError(f"{text!r} is no shard; write 3/16 for the third of sixteen")
        return cls(number, of)

    def rows(self, n: int) -> slice:
        """Its part of n rows; shards differ in size by one row at most."""
        return slice((self.number - 1) * n // self.of, self.number * n // self.of)

    def file(self, folder: Path, ending: str) -> Path:
        """Where it is."""
        return folder / f"part-{self.number:05}-of-{self.of:05}{ending}"

    def __str__(self) -> str:
        return f"shard {self.number} of {self.of}"


def join_folder(folder: Path, about: Mapping[str, Any]) -> None:
    """Make a folder of shards, or join that of others of the same call; any other is refused."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; shards need a folder, choose another with --out")
    home = settled(folder)
    there = home.exists()
    if there and not (home / ABOUT).exists() and any(not file.name.startswith(".") for file in home.iterdir()):
        raise InputError(f"{folder} is not empty and holds no shards; choose another folder with --out")
    own_folder(home, REMEDY)
    with locked(lock_of(home), wait=True):
        if not (home / ABOUT).exists():
            write_file(home / ABOUT, as_json(dict(about)), REMEDY)
        before = read_json(home / ABOUT, LARGE_JSON, "choose another folder with --out")
    for name, value in about.items():
        if before.get(name) != value:
            told = "" if isinstance(value, str) and len(value) > 40 else f" ({before.get(name)!r}, not {value!r})"
            raise InputError(f"{folder} holds shards with another {name}{told}; choose another folder with --out")


def check_complete(folder: Path) -> None:
    """Refuse a folder of shards of which some are missing."""
    if not (folder / ABOUT).is_file():
        return
    of = read_json(folder / ABOUT, LARGE_JSON, "make the shards again").get(OF)
    found = {int(match[1]) for file in folder.iterdir() if (match := PART.fullmatch(file.name))}
    missing = [number for number in range(1, of + 1) if number not in found] if isinstance(of, int) else []
    if missing:
        some = ", ".join(map(str, missing[:5])) + (", …" if len(missing) > 5 else "")
        raise InputError(f"{folder} lacks {len(missing)} of {of} shards ({some}); make them with --shard")


def digest_of(asked: Any) -> str:
    """The same for the same settings, lists and tables of ids."""
    found = hashlib.sha256()
    _feed(found, asked)
    return found.hexdigest()


def _feed(found: hashlib._Hash, asked: Any) -> None:
    if isinstance(asked, pl.Series):
        asked = asked.to_frame()
    if isinstance(asked, pl.DataFrame):
        for block in asked.iter_slices():
            found.update(block.write_csv().encode())
    elif isinstance(asked, Mapping):
        for name in sorted(asked):
            found.update(f"{name}\0".encode())
            _feed(found, asked[name])
    else:
        found.update(json_text(asked, indent=None).encode())
    found.update(b"\0")
