"""An export: a folder with the vectors in the form of a system, the ids, and how to ask; whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl

import dpaa
from dpaa._io import as_json, check_folder_name, settled, whole_folder, write_into
from dpaa.errors import InputError
from dpaa.exporting.assets import asset
from dpaa.exporting.formats import find_target
from dpaa.exporting.vectors import ExportedVectors
from dpaa.runs.lists import Ids
from dpaa.runs.model import Model
from dpaa.runs.stream import REMEDY, write_stream

ABOUT = "export.json"
FORMAT = 1
"""Of the folder: raised when what is in it, or how it is asked, changes."""
IMPORTS = {"faiss": "\nimport faiss\n", "hnswlib": "\nimport hnswlib\n", "onnx": "\nimport onnxruntime\n"}
TABLES = {
    "users.parquet": "`user_id, v0 …, turn, shift`",
    "items.parquet": "`item_id`, and title and other columns where they are known; row by row those of the index",
    "seen.parquet": "`user_id, item_id`: what users have taken",
    "query.py": "asks, as shown above; copy from it what you need",
}
FILES = {
    "faiss": {"index.faiss": "the index, for inner products"} | TABLES,
    "hnswlib": {"index.hnsw": "the index, space `ip`"} | TABLES,
    "npz": {"vectors.npz": "arrays `items` (n, d + 1), `users` (m, d), `turn`, `shift` (m,)"} | TABLES,
    "onnx": {
        "model.onnx": "inputs `user` (b) rows of users, `kappa` (1), `exclude` (b, h) rows of items, padded with the "
        "number of items, `k` (1); outputs `item` (b, k) rows, `score` (b, k)"
    }
    | TABLES,
    "pgvector": {
        "load.sql": "tables and a function; comments say more",
        "items.csv": "`item_id, vector`",
        "users.csv": "`user_id, vector, turn, shift`",
        "seen.csv": "`user_id, item_id`: what users have taken",
    },
}
ASKING = """    pip install {packages}
    python query.py USER --kappa -0.5 --k 20

    from query import Recommender                       # in Python
    Recommender().recommend(USER, k=20, kappa=-0.5)     # [(item, score), …]"""
ASKING_SQL = """    cd FOLDER && psql -X -f load.sql DATABASE
    psql DATABASE -c "SELECT * FROM dpaa_recommend(USER, 20, -0.5)"

That reads all items, and is exact. For large catalogues let pgvector make an index, and fetch more than is asked:

    CREATE INDEX ON dpaa_items USING hnsw (vector vector_ip_ops);               -- pgvector 0.5 and later
    CREATE INDEX ON dpaa_items USING ivfflat (vector vector_ip_ops) WITH (lists = 100);   -- earlier
    SET hnsw.ef_search = 200;                                                   -- or ivfflat.probes = 20
    SELECT * FROM dpaa_recommend(USER, 20, -0.5, 100);"""


def check_export(folder: Path, to: str, index: str | None, overwrite: bool) -> None:
    """Refuse, before any work, what could not be written; what is not an export is never replaced."""
    find_target(to, index)
    check_folder_name(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; name a folder for the export")
    if folder.is_dir() and any(folder.iterdir()):
        if not (folder / ABOUT).is_file():
            raise InputError(f"{folder} holds something else than an export; name another folder")
        if not overwrite:
            raise InputError(f"{folder} already exists; pass --overwrite or name another folder")


def export(
    model: Model,
    folder: str | Path,
    to: str,
    *,
    index: str | None = None,
    users: Ids | None = None,
    overwrite: bool = False,
    without_reranker: bool = False,
) -> dict[str, Any]:
    """Write a model's vectors for `faiss`, `hnswlib`, `pgvector`, `onnx` or `npz`; the dial stays a choice of queries.

    `index` is the kind of FAISS's index (`exact`, `hnsw`, `ivf`), `users` those whose vectors are wanted (all).
    Vectors cannot carry a re-ranker: a model that keeps one is refused, unless it is left out (`without_reranker`).
    Returns what `export.json` says.
    """
    target = Path(folder)
    check_export(target, to, index, overwrite)
    reranker, shown = model.reranker(), model.path or "RUN"
    if reranker is not None and not without_reranker:
        raise InputError(
            f"{model.path or model} re-ranks its lists by {reranker.in_words()}, which vectors cannot carry; write the "
            f"lists with `dpaa recommend {shown} --out recs.parquet`, or export the scores alone with "
            "--without-reranker"
        )
    system, kind = find_target(to, index)
    vectors = ExportedVectors.of(model, users)
    with whole_folder(settled(target), REMEDY) as fresh:
        extra = system.write(vectors, fresh, kind)
        if to != "pgvector":
            _tables(vectors, fresh)
            own = asset(f"search_{to}.py").template
            search = own if to == "onnx" else asset("recommend.py").template + own
            code = {"packages": system.packages, "imports": IMPORTS.get(to, ""), "search": search}
            text = asset("query.py").substitute(code, kappa=f"{model.kappa():g}")
            write_into(fresh, "query.py", text)
        about = _about(vectors, to, kind) | extra
        write_into(fresh, ABOUT, as_json(about))
        write_into(fresh, "README.md", _readme(about, system.packages))
    return about


def _about(vectors: ExportedVectors, to: str, kind: str) -> dict[str, Any]:
    model = vectors.model
    return {
        "kind": "export",
        "format": FORMAT,
        "to": to,
        "index": kind,
        "version": dpaa.__version__,
        "method": model.method.name,
        "dataset": model.manifest.get("dataset"),
        "popularity_dial": model.kappa(),
        "reranker_left_out": model.manifest.get("rerank"),
        "users": len(vectors.users),
        "items": len(vectors.items),
        "coordinates": vectors.items.shape[1],
        "popularity_mean": float(vectors.mean[-1]),
        "popularity_scale": vectors.scale,
    }


def _tables(vectors: ExportedVectors, folder: Path) -> None:
    of_users = (block.frame() for block in vectors.user_blocks())
    for name, blocks in (
        ("users.parquet", of_users),
        ("items.parquet", iter([vectors.model.items[vectors.candidates]])),
        ("seen.parquet", vectors.seen_blocks()),
    ):
        _write(blocks, folder / name)


def _write(blocks: Iterator[pl.DataFrame], file: Path) -> None:
    first = next(blocks)
    write_stream(chain([first], blocks), first.schema, file)


def _readme(about: dict[str, Any], packages: str) -> str:
    to = about["to"]
    how = ASKING_SQL if to == "pgvector" else ASKING.format(packages=packages)
    if "recall" in about:
        how += (
            f"\n\nThe index is approximate ({about['index']}, searched {about['width']:,} wide): it found "
            f"{about['recall']:.1%} of the best 20 when it was tried with users of the run at κ from −1 to 1."
        )
    if about["reranker_left_out"]:
        how += (
            f"\n\nThe run re-ranks its lists by {about['reranker_left_out']['name']}, which is left out here: lists "
            "from this export are those of `dpaa recommend RUN --rerank none`."
        )
    trained_on = about["dataset"] or {}
    return asset("README.md").substitute(
        {name: about[name] for name in ("method", "to", "version")}
        | {name: f"{about[name]:,}" for name in ("users", "items", "coordinates")},
        dataset=" ".join(str(trained_on.get("name", "a dataset")).split()),
        kappa=f"{about['popularity_dial']:g}",
        how=how,
        files="\n".join(f"| `{name}` | {says} |" for name, says in FILES[to].items()),
    )
