"""An export: a folder with the vectors in the form of a system, the ids, and how to query; whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

import dpaa
from dpaa._io import as_json, check_folder_name, resolve_path, whole_folder, write_into
from dpaa.errors import InputError
from dpaa.exporting._targets import ExportedVectors, asset, find_target, write_blocks
from dpaa.runs.lists import Ids
from dpaa.runs.model import Model
from dpaa.runs.stream import REMEDY

ABOUT = "export.json"
FORMAT = 1
"""Of the folder: raised when its content, or how it is queried, changes."""


def check_export(folder: Path, to: str, overwrite: bool) -> None:
    """Refuse, before any work, what could not be written; what is not an export is never replaced.

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
            raise InputError(f"{folder} holds something else than an export; name another folder")
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
    """Write a model's vectors for another system; the popularity dial stays a choice of each query.

    Parameters
    ----------
    model : a fitted or loaded model that ranks by an inner product
    folder : where the export will be
    to : `faiss`, `pgvector` or `npz`
    users : ids of the users whose vectors are exported; None = all
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
            f"{model.path or model} re-ranks its lists by {reranker.in_words()}, which vectors cannot carry; write the "
            f"lists with `dpaa recommend {model.path or 'RUN'} --out recs.parquet`, or export the scores alone with "
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
