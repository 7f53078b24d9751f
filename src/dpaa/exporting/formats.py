"""Where vectors can go: one function per system, each writes its files into a folder and says what to know of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from dpaa._io import write_into
from dpaa.errors import InputError
from dpaa.exporting.onnx_model import write_onnx
from dpaa.exporting.pgvector import write_pgvector
from dpaa.exporting.vectors import ExportedVectors
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


class Target(NamedTuple):
    """A system, and how its export is made."""

    write: Callable[[ExportedVectors, Path, str], dict[str, Any]]
    """Vectors, the folder to fill, the kind of index → what `export.json` says of it."""
    kinds: tuple[str, ...]
    """Kinds of index there are; the first unless asked for."""
    packages: str
    """What its `query.py` needs."""


def write_npz(vectors: ExportedVectors, folder: Path, kind: str) -> dict[str, Any]:
    """All items and users as NumPy arrays; the ids are in the tables beside them, row by row."""
    del kind
    blocks = list(vectors.user_blocks())
    arrays = {
        "items": vectors.items,
        "users": np.concatenate([block.vectors for block in blocks]),
        "turn": np.concatenate([block.turn for block in blocks]),
        "shift": np.concatenate([block.shift for block in blocks]),
    }

    def save(file: Path) -> None:
        with file.open("wb") as opened:  # by a name, numpy would add an ending
            np.savez(opened, allow_pickle=False, **arrays)

    write_into(folder, "vectors.npz", save)
    return {}


def write_faiss(vectors: ExportedVectors, folder: Path, kind: str) -> dict[str, Any]:
    """A flat index, which is exact, or one of those that `dpaa serve` uses."""
    library = faiss()
    if kind == "exact":
        flat = library.IndexFlatIP(vectors.items.shape[1])
        flat.add(vectors.items)
        write_into(folder, FILE, lambda file: library.write_index(flat, str(file)))
        return {}
    made = make_index(kind, vectors.items)
    write_into(folder, FILE, lambda file: library.write_index(made, str(file)))
    width, recall = widened_index(kind, made, 1.0, torch.from_numpy(vectors.tried), vectors.tried_best)
    return {"width": width, "recall": recall}


def write_hnswlib(vectors: ExportedVectors, folder: Path, kind: str) -> dict[str, Any]:
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


TARGETS = {
    "faiss": Target(write_faiss, KINDS, "faiss-cpu numpy polars"),
    "hnswlib": Target(write_hnswlib, ("hnsw",), "hnswlib numpy polars"),
    "pgvector": Target(write_pgvector, ("exact",), ""),
    "onnx": Target(write_onnx, ("exact",), "onnxruntime numpy polars"),
    "npz": Target(write_npz, ("exact",), "numpy polars"),
}


def find_target(name: str, kind: str | None) -> tuple[Target, str]:
    """The system of that name and the kind of index; what there is not is refused, before any work."""
    if name not in TARGETS:
        raise InputError(f"there is no export to {name!r}; choose one of {', '.join(TARGETS)}")
    target = TARGETS[name]
    if kind is not None and kind not in target.kinds:
        raise InputError(f"an export to {name} has no index {kind!r}; choose one of {', '.join(target.kinds)}")
    extras = {"faiss": "index", "hnswlib": "hnswlib", "onnx": "onnx"}
    if name in extras:
        needed(name, f"an export to {name}", extras[name])
    return target, kind or target.kinds[0]
