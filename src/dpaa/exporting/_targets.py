"""Where vectors can go: one function per system, which writes its files into a folder and describes them."""

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
from dpaa.errors import InputError
from dpaa.exporting._vectors import ExportedVectors
from dpaa.runs.stream import Sink, write_stream
from dpaa.serving.index import (
    FILE,
    LINKS,
    NARROWEST,
    TRIED_K,
    WIDTH_BUILDING,
    faiss,
    make_index,
    widened,
    widened_index,
)
from dpaa.serving.options import KINDS, needed

ASSETS = Path(__file__).parent / "assets"
OPSET, IR_VERSION = 17, 8
"""Of ONNX: old enough for every runtime of the last years."""
LARGEST_ONNX = 1_500_000_000
"""Bytes of tables above which they lie in a file beside the model: a protocol buffer ends at 2 GB."""
MOST_COORDINATES = 16_000
"""Of a vector of pgvector."""


class Target(NamedTuple):
    """A system, and how its export is made."""

    write: Callable[[ExportedVectors, Path, str], dict[str, Any]]
    """Vectors, the folder to fill, the kind of index → what `export.json` says of it."""
    kinds: tuple[str, ...]
    """Kinds of index; the first is the default."""
    packages: str
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


def _npz(vectors: ExportedVectors, folder: Path, kind: str) -> dict[str, Any]:
    """All items and users as NumPy arrays; the ids are in the tables beside them, row by row."""
    del kind

    def save(file: Path) -> None:
        with file.open("wb") as opened:  # by a name, numpy would add an ending
            np.savez(opened, allow_pickle=False, items=vectors.items, **vectors.user_arrays())

    write_into(folder, "vectors.npz", save)
    return {}


def _faiss(vectors: ExportedVectors, folder: Path, kind: str) -> dict[str, Any]:
    """A flat index, which is exact, or one of those that `dpaa serve` uses."""
    library = faiss()
    if kind == "exact":
        index = library.IndexFlatIP(vectors.items.shape[1])
        index.add(vectors.items)
    else:
        index = make_index(kind, vectors.items)
    write_into(folder, FILE, lambda file: library.write_index(index, str(file)))
    if kind == "exact":
        return {}
    width, recall = widened_index(kind, index, 1.0, torch.from_numpy(vectors.tried), vectors.tried_best)
    return {"width": width, "recall": recall}


def _hnswlib(vectors: ExportedVectors, folder: Path, kind: str) -> dict[str, Any]:
    """A graph for inner products, searched as wide as finds nearly all of the best."""
    library = needed("hnswlib", "an export to hnswlib", "hnswlib")
    rows, size = vectors.items.shape
    index = library.Index(space="ip", dim=size)
    index.init_index(max_elements=rows, ef_construction=WIDTH_BUILDING, M=LINKS, random_seed=100)
    index.set_num_threads(1)
    index.add_items(vectors.items, np.arange(rows))
    write_into(folder, "index.hnsw", lambda file: index.save_index(str(file)))

    def search(width: int) -> Any:
        wanted = min(2 * TRIED_K, rows)
        index.set_ef(max(width, wanted))
        return index.knn_query(vectors.tried, k=wanted)[0]

    width, recall = widened(search, vectors.tried_best, NARROWEST[kind], rows)
    return {"width": width, "recall": recall}


def _pgvector(vectors: ExportedVectors, folder: Path, kind: str) -> dict[str, Any]:
    """Tables for psql to load in one transaction, and a function that recommends at any κ."""
    del kind
    model, size = vectors.model, vectors.items.shape[1]
    if size > MOST_COORDINATES:
        raise InputError(
            f"vectors of {size:,} coordinates are more than pgvector takes ({MOST_COORDINATES:,}); use npz or faiss"
        )
    types = {Column.USER: _sql_type(model.user_ids, "user"), Column.ITEM: _sql_type(model.item_ids, "item")}
    ids, step = model.item_ids.gather(vectors.candidates).alias(Column.ITEM), 65_536
    items = (
        pl.DataFrame([ids.slice(first, step), _sql_vectors(pl.Series("vector", vectors.items[first:][:step]), "[]")])
        for first in range(0, max(len(ids), 1), step)
    )
    users = (block.with_columns(_sql_vectors(block["vector"], "{}")) for block in vectors.user_blocks())
    for name, blocks in (("items.csv", items), ("users.csv", users), ("seen.csv", vectors.seen_blocks())):
        # Text is quoted, so that an empty id is not taken for none.
        write_blocks(blocks, folder / name, lambda table, path: table.sink_csv(path, quote_style="non_numeric"))
    constants = {"kappa": repr(model.kappa()), "popularity_mean": repr(float(vectors.mean[-1]))}
    named = {"size": size, "user_type": types[Column.USER], "item_type": types[Column.ITEM]}
    write_into(folder, "load.sql", asset("load.sql").substitute(constants, **named))
    return {"types": {"user_id": types[Column.USER], "item_id": types[Column.ITEM]}}


def _sql_type(ids: pl.Series, what: str) -> str:
    if ids.dtype == pl.String:
        null = ids.filter(ids.str.contains("\0", literal=True))
        if len(null):
            raise InputError(f"the {what} id {null[0]!r} has a null character, which PostgreSQL cannot store; use npz")
        return "text"
    return "numeric(20)" if ids.dtype == pl.UInt64 else "bigint"


def _sql_vectors(rows: pl.Series, brackets: str) -> pl.Series:
    """Vectors as PostgreSQL reads them, every number with all of its digits."""
    joined = rows.arr.to_list().cast(pl.List(pl.String)).list.join(",")
    return (brackets[0] + joined + brackets[1]).alias("vector")


def _onnx(vectors: ExportedVectors, folder: Path, kind: str) -> dict[str, Any]:
    """The whole recommender as one model: users, κ, what to leave out and k go in, items and scores come out."""
    del kind
    onnx = needed("onnx", "an export to onnx", "onnx")
    of_users = vectors.user_arrays()
    tables = {
        "users": of_users["users"],
        "turn": of_users["turn"][:, None],
        "shift": of_users["shift"][:, None],
        "items": np.ascontiguousarray(vectors.items.T),
        "popularity_mean": vectors.mean[-1:],
        "least": np.array([-np.inf], dtype=np.float32),
        "first": np.array([0], dtype=np.int64),
        "end": np.array([len(vectors.items)], dtype=np.int64),
        "columns": np.array([1], dtype=np.int64),
    }
    model = _onnx_model(onnx, tables)
    onnx.checker.check_model(model)
    if sum(table.nbytes for table in tables.values()) > LARGEST_ONNX:
        beside = {"save_as_external_data": True, "all_tensors_to_one_file": True, "location": "model.onnx.data"}
        onnx.save(model, str(folder / "model.onnx"), **beside)
    else:
        write_into(folder, "model.onnx", lambda file: onnx.save(model, str(file)))
    return {"opset": OPSET, "padding": len(vectors.items)}


def _onnx_model(onnx: Any, tables: dict[str, NDArray[Any]]) -> Any:
    make, number = onnx.helper, onnx.TensorProto
    nodes: list[tuple[str, str, str, dict[str, int]]] = [
        ("Gather", "users user", "vector", {}),
        ("Gather", "turn user", "own_turn", {}),
        ("Gather", "shift user", "own_shift", {}),
        ("Mul", "own_turn kappa", "coordinate", {}),
        ("Concat", "vector coordinate", "query", {"axis": 1}),
        ("MatMul", "query items", "product", {}),
        ("Mul", "coordinate popularity_mean", "popular_shift", {}),
        ("Add", "own_shift popular_shift", "whole_shift", {}),
        ("Add", "product whole_shift", "every_score", {}),
        # One more column, which padding of `exclude` points to.
        ("Concat", "every_score whole_shift", "padded", {"axis": 1}),
        ("Shape", "exclude", "shape", {}),
        ("Expand", "least shape", "hidden", {}),
        ("ScatterElements", "padded exclude hidden", "masked", {"axis": 1}),
        ("Slice", "masked first end columns", "allowed", {}),
        ("TopK", "allowed k", "score item", {"axis": 1, "largest": 1, "sorted": 1}),
    ]
    inputs = {"user": (number.INT64, ["users_asked"]), "kappa": (number.FLOAT, [1])}
    inputs |= {"exclude": (number.INT64, ["users_asked", "excluded"]), "k": (number.INT64, [1])}
    outputs = {name: (kind, ["users_asked", None]) for name, kind in (("item", number.INT64), ("score", number.FLOAT))}
    graph = make.make_graph(
        [make.make_node(kind, given.split(), made.split(), **more) for kind, given, made, more in nodes],
        "recommend",
        [make.make_tensor_value_info(name, *kind) for name, kind in inputs.items()],
        [make.make_tensor_value_info(name, *kind) for name, kind in outputs.items()],
        [onnx.numpy_helper.from_array(table, name) for name, table in tables.items()],
        doc_string="Rows of users and items are those of users.parquet and items.parquet.",
    )
    opset = [make.make_opsetid("", OPSET)]
    return make.make_model(graph, opset_imports=opset, ir_version=IR_VERSION, producer_name="dpaa")


TARGETS = {
    "faiss": Target(_faiss, KINDS, "faiss-cpu numpy polars", "index"),
    "hnswlib": Target(_hnswlib, ("hnsw",), "hnswlib numpy polars", "hnswlib"),
    "pgvector": Target(_pgvector, ("exact",), ""),
    "onnx": Target(_onnx, ("exact",), "onnxruntime numpy polars", "onnx"),
    "npz": Target(_npz, ("exact",), "numpy polars"),
}


def find_target(name: str, kind: str | None) -> tuple[Target, str]:
    """The system of that name and the kind of index; refuses, before any work, what cannot be made."""
    if name not in TARGETS:
        raise InputError(f"there is no export to {name!r}; choose one of {', '.join(TARGETS)}")
    target = TARGETS[name]
    if kind is not None and kind not in target.kinds:
        raise InputError(f"an export to {name} has no index {kind!r}; choose one of {', '.join(target.kinds)}")
    if target.extra:
        needed(name, f"an export to {name}", target.extra)
    return target, kind or target.kinds[0]
