"""Where vectors can go: one function per system, which writes its files into a folder and describes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from dpaa._io import write_into
from dpaa.data.columns import Column
from dpaa.errors import InputError, import_extra
from dpaa.exporting._vectors import ExportedVectors
from dpaa.runs.stream import Sink, write_stream

ASSETS = Path(__file__).parent / "assets"
BLOCK_ROWS = 65_536
"""Vectors that are written as text at once."""


class Target(NamedTuple):
    """A system, and how its export is made."""

    write: Callable[[ExportedVectors, Path], dict[str, Any]]
    """Vectors, the folder to fill → what `export.json` says of them besides."""
    packages: str = ""
    """What its `query.py` needs."""
    extra: str = ""
    """Extra of the package that it needs."""


def asset(name: str) -> Template:
    """A text that is written beside the vectors; `$name` stands for what is filled in."""
    return Template((ASSETS / f"{name}.txt").read_text(encoding="utf-8"))


def write_blocks(blocks: Iterator[pl.DataFrame], file: Path, sink: Sink | None = None) -> None:
    """Write blocks of one schema to Parquet or CSV, by the file's ending."""
    first = next(blocks)
    write_stream(chain([first], blocks), first.schema, file, sink)


def _npz(vectors: ExportedVectors, folder: Path) -> dict[str, Any]:
    """All items and users as NumPy arrays; the ids are in the tables beside them, row by row."""
    users = pl.concat(vectors.user_blocks())
    arrays = {
        name: users[column].to_numpy() for name, column in (("users", "vector"), ("turn", "turn"), ("shift", "shift"))
    }

    def save(file: Path) -> None:
        with file.open("wb") as opened:  # by a name, numpy would add an ending
            np.savez(opened, allow_pickle=False, items=vectors.items, **arrays)

    write_into(folder, "vectors.npz", save)
    return {}


def _faiss(vectors: ExportedVectors, folder: Path) -> dict[str, Any]:
    """A flat index, which is exact; FAISS makes others from its vectors."""
    library = import_extra("faiss", "an export to faiss", "index")
    index = library.IndexFlatIP(vectors.items.shape[1])
    index.add(vectors.items)
    write_into(folder, "index.faiss", lambda file: library.write_index(index, str(file)))
    return {}


def _pgvector(vectors: ExportedVectors, folder: Path) -> dict[str, Any]:
    """Tables for psql to load in one transaction, and a function that recommends at any κ."""
    model, size = vectors.model, vectors.items.shape[1]
    types = {"user_type": _sql_type(model.user_ids), "item_type": _sql_type(model.item_ids)}
    ids = model.item_ids.gather(vectors.candidates).alias(Column.ITEM)
    items = (
        pl.DataFrame([ids[first:][:BLOCK_ROWS], _sql(pl.Series("vector", vectors.items[first:][:BLOCK_ROWS]), "[]")])
        for first in range(0, max(len(ids), 1), BLOCK_ROWS)
    )
    users = (block.with_columns(_sql(block["vector"], "{}")) for block in vectors.user_blocks())
    for name, blocks in (("items.csv", items), ("users.csv", users), ("seen.csv", iter([vectors.seen()]))):
        # Text is quoted, so that an empty id is not taken for none.
        write_blocks(blocks, folder / name, lambda table, path: table.sink_csv(path, quote_style="non_numeric"))
    constants = {"kappa": repr(model.kappa()), "popularity_mean": repr(float(vectors.mean[-1])), "size": size}
    write_into(folder, "load.sql", asset("load.sql").substitute(constants, **types))
    return {}


def _sql_type(ids: pl.Series) -> str:
    return "text" if ids.dtype == pl.String else "numeric(20)" if ids.dtype == pl.UInt64 else "bigint"


def _sql(rows: pl.Series, brackets: str) -> pl.Series:
    """Vectors as PostgreSQL reads them, every number with all of its digits."""
    joined = rows.arr.to_list().cast(pl.List(pl.String)).list.join(",")
    return (brackets[0] + joined + brackets[1]).alias("vector")


TARGETS = {
    "faiss": Target(_faiss, "faiss-cpu numpy polars", "index"),
    "pgvector": Target(_pgvector),
    "npz": Target(_npz, "numpy polars"),
}


def find_target(name: str) -> Target:
    """The system of that name; refuses, before any work, what cannot be made."""
    if name not in TARGETS:
        raise InputError(f"there is no export to {name!r}; choose one of {', '.join(TARGETS)}")
    target = TARGETS[name]
    if target.extra:
        import_extra(name, f"an export to {name}", target.extra)
    return target
