"""Vectors of users and items in two files, for an index of somebody's own; the folder appears whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import polars as pl

from dpaa._io import check_folder_name, is_staging, settled, whole_folder
from dpaa.errors import InputError
from dpaa.runs.lists import Ids
from dpaa.runs.model import Model
from dpaa.runs.stream import write_stream

USERS, ITEMS = "users.parquet", "items.parquet"


def check_vector_folder(folder: Path, overwrite: bool) -> None:
    """Refuse, before any work, a folder that could not be written; what is not an export is never replaced."""
    check_folder_name(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; name a folder for the vectors")
    if folder.is_dir():
        there = {file.name for file in folder.iterdir() if not is_staging(file)}
        if there - {USERS, ITEMS}:
            raise InputError(f"{folder} holds something else than exported vectors; name another folder")
        if there and not overwrite:
            raise InputError(f"{folder} already exists; pass --overwrite or name another folder")
    if not folder.resolve().parent.is_dir():
        raise InputError(f"there is no folder {folder.parent}; make it first or name another folder")


def write_vectors(model: Model, folder: Path, users: Ids | None = None, overwrite: bool = False) -> tuple[int, int]:
    """Write `users.parquet` and `items.parquet` of `Model.dial_vectors`.  Returns their numbers of rows."""
    check_vector_folder(folder, overwrite)
    of_users, of_items = model.dial_vector_blocks(users)
    with whole_folder(settled(folder), "make room or choose another place") as fresh:
        return _write(of_users, fresh / USERS), _write(of_items, fresh / ITEMS)


def _write(blocks: Iterator[pl.DataFrame], file: Path) -> int:
    first = next(blocks)
    return write_stream(chain([first], blocks), first.schema, file)
