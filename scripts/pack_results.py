"""Pack the JSON files of `dpaa reproduce` into one Parquet file per kind.

Call: python scripts/pack_results.py [results].
The Parquet file is written before the first JSON file is removed: a kill leaves a result twice, never nowhere.
"""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl

from dpaa._io import write_file
from dpaa.reproduction._results import ResultStore, RunResult, Study

COLUMNS = ("recall@20", "ndcg@20", "hit@20", "arp@20", "coverage@20")


def pack(folder: Path, kind: str) -> int:
    """Move the JSON files of a kind into its Parquet file; returns how many there were."""
    files = {file.stem: file for file in (folder / kind).glob("*.json")}
    packed = folder / f"{kind}.parquet"
    texts = dict(pl.read_parquet(packed, columns=["key", "json"]).iter_rows()) if packed.exists() else {}
    texts |= {key: file.read_text(encoding="utf-8") for key, file in files.items()}
    store = ResultStore(folder, kind, Study if kind == "tuned" else RunResult)
    rows = []
    for key in sorted(texts):
        result = store.read(key)
        row = {"key": key, **result.model_dump(include={"data", "method", "protocol", "label", "seed"})}
        if isinstance(result, RunResult):
            row |= {name: result.value(name) for name in COLUMNS}
        rows.append(row | {"json": texts[key]})
    if files:
        write_file(packed, pl.DataFrame(rows, infer_schema_length=None).write_parquet, "free some space")
    for file in files.values():
        file.unlink()
    return len(files)


if __name__ == "__main__":
    where = Path(sys.argv[1] if len(sys.argv) > 1 else "results")
    for each in ("overall", "severity", "tuned"):
        print(f"{each}: {pack(where, each)} results packed")
