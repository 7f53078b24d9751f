"""Tables for PostgreSQL with pgvector, loaded by psql in one transaction; a function recommends at any κ."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from dpaa._io import write_into
from dpaa.data.columns import Column
from dpaa.errors import InputError
from dpaa.exporting.assets import asset
from dpaa.exporting.vectors import SHIFT, TURN, ExportedVectors
from dpaa.runs.stream import write_stream

MOST_COORDINATES = 16_000
"""Of a vector of pgvector; an index of its takes 2,000."""
VECTOR = "vector"


def write_pgvector(vectors: ExportedVectors, folder: Path, kind: str) -> dict[str, Any]:
    """`items.csv`, `users.csv`, `seen.csv` and `load.sql`."""
    del kind
    size = vectors.items.shape[1]
    if size > MOST_COORDINATES:
        raise InputError(
            f"vectors of {size:,} coordinates are more than pgvector takes ({MOST_COORDINATES:,}); use npz or faiss"
        )
    model = vectors.model
    types = {Column.USER: _sql_type(model.user_ids, "user"), Column.ITEM: _sql_type(model.item_ids, "item")}
    _write(_items(vectors), folder / "items.csv")
    _write(_users(vectors), folder / "users.csv")
    _write(vectors.seen_blocks(), folder / "seen.csv")
    script = asset("load.sql").substitute(
        size=size,
        user_type=types[Column.USER],
        item_type=types[Column.ITEM],
        kappa=repr(model.kappa()),
        popularity_mean=repr(float(vectors.mean[-1])),
    )
    write_into(folder, "load.sql", script)
    return {"types": {"user_id": types[Column.USER], "item_id": types[Column.ITEM]}}


def _sql_type(ids: pl.Series, what: str) -> str:
    if ids.dtype == pl.String:
        empty = ids.filter(ids.str.contains("\0", literal=True))
        if len(empty):
            raise InputError(f"the {what} id {empty[0]!r} has a null character, which PostgreSQL cannot store; use npz")
        return "text"
    return "numeric(20)" if ids.dtype == pl.UInt64 else "bigint"


def _items(vectors: ExportedVectors) -> Iterator[pl.DataFrame]:
    ids, step = vectors.item_ids, 65_536
    for first in range(0, max(len(ids), 1), step):
        rows = pl.Series(VECTOR, vectors.items[first : first + step])
        yield pl.DataFrame([ids.slice(first, step), _text(rows, "[", "]")])


def _users(vectors: ExportedVectors) -> Iterator[pl.DataFrame]:
    for block in vectors.user_blocks():
        rows = pl.Series(VECTOR, block.vectors)
        yield pl.DataFrame(
            [block.ids, _text(rows, "{", "}"), pl.Series(TURN, block.turn), pl.Series(SHIFT, block.shift)]
        )


def _text(rows: pl.Series, opening: str, closing: str) -> pl.Series:
    """Vectors as PostgreSQL reads them, every number with as many digits as it has."""
    joined = rows.arr.to_list().cast(pl.List(pl.String)).list.join(",")
    return (opening + joined + closing).alias(VECTOR)


def _write(blocks: Iterator[pl.DataFrame], file: Path) -> None:
    first = next(blocks)

    def every() -> Iterator[pl.DataFrame]:
        yield first
        yield from blocks

    # Text is quoted, so that an empty id is not taken for none.
    write_stream(every(), first.schema, file, lambda table, path: table.sink_csv(path, quote_style="non_numeric"))
