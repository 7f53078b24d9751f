"""An export: a folder with the vectors in the form of a system, the ids, and how to query; whole or not at all."""

from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

import dpaa
from dpaa._io import as_json, check_folder_name, resolve_path, whole_folder, write_into
from dpaa.data.ids import Column, look_up
from dpaa.errors import InputError, import_extra
from dpaa.runs.lists import Ids
from dpaa.runs.model import BLOCK_VECTORS, Model
from dpaa.runs.stream import REMEDY, Sink, write_stream

ASSETS = Path(__file__).parent / "assets"
BLOCK_ROWS = 65_536
"""Vectors that are written as text at once."""


class ExportedVectors:
    """A model's users and its items that may be recommended.

    Parameters
    ----------
    model : its method must rank by an inner product
    users : whose vectors are exported; None = all.  Those without training pairs are left out: their vectors say
        nothing, and no query gives the popularity list that they get here
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
        wanted = every if users is None else np.unique(look_up(users, model.user_ids, "user"))
        self.users = np.intersect1d(wanted, model.train.user)
        self.left_out = len(wanted) - len(self.users)
        self.candidates = np.arange(len(model.item_ids)) if model.candidates is None else np.asarray(model.candidates)
        table = dial.items[torch.from_numpy(self.candidates.astype(np.int64))]
        # Centred: the mean's part of a score is the same for all items of a user, and would take digits from
        # what differs.
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
    index = library.IndexFlatIP(vectors.items.shape[1])  # inner products, as the method's own scores
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


ABOUT = "export.json"
FORMAT = 1
"""Of the folder: raised when its content, or how it is queried, changes."""


def check_export(folder: Path, to: str, overwrite: bool) -> None:
    """Check before any work that the export can be written; a folder that is not an export is never replaced.

    Parameters
    ----------
    folder : where the export will be
    to : as in `export`
    overwrite : whether an export that is there may be replaced
    """
    find_target(to)
    check_folder_name(folder)
    if folder.is_file():
        raise InputError(f"{folder} is a file; name a folder for the export")
    if folder.is_dir() and any(folder.iterdir()):
        if not (folder / ABOUT).is_file():
            raise InputError(f"{folder} holds something other than an export; name another folder")
        if not overwrite:
            raise InputError(f"{folder} already exists; pass --overwrite or name another folder")


def export(
    model: Model,
    folder: str | Path,
    to: str,
    *,
    users: Ids | None = None,
    overwrite: bool = False,
    without_reranker: bool = False,
) -> dict[str, Any]:
    """Write a model's vectors for another system; the popularity dial is set per query.

    Parameters
    ----------
    model : a fitted or loaded model that ranks by an inner product
    folder : where the export will be
    to : `faiss`, `pgvector` or `npz`
    users : ids of the users whose vectors are exported, as far as they have training pairs; None = all
    overwrite : whether an export that is there may be replaced
    without_reranker : leave out the re-ranker of a model that keeps one, which vectors cannot carry; else it is refused

    Returns
    -------
    what `export.json` says
    """
    target = Path(folder)
    check_export(target, to, overwrite)
    reranker = model.reranker()
    if reranker is not None and not without_reranker:
        raise InputError(
            f"{model.path or model} re-ranks its lists by {reranker.in_words()}, which vectors cannot express; write "
            f"the lists with `dpaa recommend {model.path or 'RUN'} --out recs.parquet`, or export only the scores with "
            "--without-reranker"
        )
    system = find_target(to)
    vectors = ExportedVectors(model, users)
    with whole_folder(resolve_path(target), REMEDY) as staged:
        about = {
            "kind": "export",
            "format": FORMAT,
            "to": to,
            "index": "exact",
            "version": dpaa.__version__,
            "method": model.method.name,
            "dataset": model.manifest.get("dataset"),
            "popularity_dial": model.kappa(),
            "reranker_left_out": model.manifest.get("rerank"),
            "users": len(vectors.users),
            "users_without_training_pairs": vectors.left_out,
            "items": len(vectors.items),
            "coordinates": vectors.items.shape[1],
            "popularity_mean": float(vectors.mean[-1]),
        } | system.write(vectors, staged)
        if to != "pgvector":
            _write_query(vectors, staged, to, system.packages)
        write_into(staged, ABOUT, as_json(about))
        write_into(staged, "README.md", _readme(about, system.packages))
    return about


def _write_query(vectors: ExportedVectors, folder: Path, to: str, packages: str) -> None:
    """The tables of users, items and seen pairs, and the script that queries them."""
    wide = pl.col("vector").arr.to_struct(fields=[f"v{number}" for number in range(vectors.items.shape[1] - 1)])
    write_blocks((b.with_columns(wide).unnest("vector") for b in vectors.user_blocks()), folder / "users.parquet")
    write_blocks(iter([vectors.model.items[vectors.candidates]]), folder / "items.parquet")
    write_blocks(iter([vectors.seen()]), folder / "seen.parquet")
    code = asset("query.py").substitute(
        packages=packages,
        imports="" if to == "npz" else f"\nimport {to}\n",
        search=asset("recommend.py").template + asset(f"search_{to}.py").template,
        kappa=f"{vectors.model.kappa():g}",
    )
    write_into(folder, "query.py", code)


def _readme(about: dict[str, Any], packages: str) -> str:
    own = about["to"] == "pgvector"
    return asset("README.md").substitute(
        about,
        dataset=" ".join(str((about["dataset"] or {}).get("name", "a dataset")).split()),
        how=asset("how_pgvector.md" if own else "how.md").substitute(packages=packages).rstrip(),
        files=(asset(f"files_{about['to']}.md").template + ("" if own else asset("files.md").template)).rstrip(),
    )
