"""What every export holds, and where it can go: one function per system, which writes its files and describes them.

Items and users are vectors, so that the popularity dial is a choice of each query:

    score(u, i) at κ = ⟨(v_u, κ · turn_u), item vector⟩ + shift_u + κ · turn_u · popularity_mean

The items' mean is subtracted and the popularity coordinate scaled to the deviation of the others, since an approximate
index needs vectors that lie evenly; `turn` is the user's deviation by the inverse scale.  What follows the inner
product is the same for all items of a query, so rankings do not need it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from dpaa._io import write_into
from dpaa.data.columns import Column
from dpaa.data.ids import look_up
from dpaa.errors import InputError, import_extra
from dpaa.runs.lists import Ids
from dpaa.runs.model import BLOCK_VECTORS, Model
from dpaa.runs.stream import Sink, write_stream

ASSETS = Path(__file__).parent / "assets"
BLOCK_ROWS = 65_536
"""Vectors that are written as text at once."""


class ExportedVectors:
    """A model's users and its items that may be recommended.

    Parameters
    ----------
    model : its method must rank by an inner product
    users : whose vectors are exported; None = all
    """

    def __init__(self, model: Model, users: Ids | None = None) -> None:
        dial, vectors = model.prepared_dial, model.method.vectors()
        if dial is None or vectors is None:
            raise InputError(
                f"method {model.method.name} does not rank by an inner product, so it has no vectors to export; use "
                "dpaa recommend"
            )
        self.model, self._dial, self._vectors = model, dial, vectors
        every = np.arange(len(model.user_ids))
        self.users = every if users is None else np.unique(look_up(users, model.user_ids, "user"))
        self.candidates = np.arange(len(model.item_ids)) if model.candidates is None else np.asarray(model.candidates)
        table = dial.items[torch.from_numpy(self.candidates.astype(np.int64))]
        rows = table.numpy() - table.mean(dim=0).numpy()
        spread, own = float(rows[:, :-1].std()), float(rows[:, -1].std())
        self.scale = spread / own if own > 0 and spread > 0 else 1.0
        self.mean = table.mean(dim=0).numpy().copy()
        for coordinates in (rows[:, -1:], self.mean[-1:]):
            coordinates *= self.scale
        self.items = np.ascontiguousarray(rows)  # (n, d + 1); the last coordinate is popularity, times `scale`

    def user_blocks(self) -> Iterator[pl.DataFrame]:
        """`user_id, vector, turn, shift` of all users, a block at a time; at least one block."""
        for first in range(0, max(len(self.users), 1), BLOCK_VECTORS):
            yield self._block(self.users[first : first + BLOCK_VECTORS])

    def seen(self) -> pl.DataFrame:
        """`user_id, item_id` of the exported users' training pairs with exported items."""
        train = self.model.train
        kept = np.isin(train.user, self.users) & np.isin(train.item, self.candidates)
        users = self.model.user_ids.gather(train.user[kept]).alias(Column.USER)
        return pl.DataFrame([users, self.model.item_ids.gather(train.item[kept]).alias(Column.ITEM)])

    def _block(self, index: NDArray[Any]) -> pl.DataFrame:
        queries = self._vectors.queries(torch.from_numpy(index.astype(np.int64)))
        vectors = queries.numpy()
        columns = {
            "vector": vectors,
            "turn": (self._dial.deviation(queries) / self.scale).numpy(),  # times κ, the query's last coordinate
            # what the mean of the items adds to all scores of the user
            "shift": (vectors.astype(np.float64) @ self.mean[:-1].astype(np.float64)).astype(np.float32),
        }
        ids = self.model.user_ids.gather(index).alias(Column.USER)
        return pl.DataFrame([ids, *(pl.Series(name, values) for name, values in columns.items())])


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
