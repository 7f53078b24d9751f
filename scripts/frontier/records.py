"""What was found, a record for each dataset and seed: lines of a WORK folder, and results/frontier.parquet of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
from scripts.frontier.lists import SWEPT

STORE = Path(__file__).resolve().parents[2] / "results" / "frontier.parquet"
TIMED = "time "
"""Beginning of the names of records that are no cells."""


def read(*files: Path) -> dict[str, dict[str, Any]]:
    """The last record of each cell, in these files or kept before; of today's candidates only."""
    lines = pl.read_parquet(STORE)["record"].to_list() if STORE.exists() else []
    for file in files:
        lines += file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    found = [json.loads(line) for line in lines if line.endswith("}")]
    return {one["cell"]: one for one in found if one["cell"].startswith(TIMED) or one["swept"] == list(SWEPT)}


def append(file: Path, record: dict[str, Any]) -> None:
    """One line."""
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(record) + "\n")


def keep(files: Sequence[Path]) -> None:
    """All records of these files and of before, in one small file, sorted: the same records give the same bytes."""
    found = read(*files)
    rows = [{"cell": name, "record": json.dumps(_short(found[name]))} for name in sorted(found)]
    STORE.parent.mkdir(exist_ok=True)
    beside = STORE.with_suffix(".new")
    pl.DataFrame(rows).write_parquet(beside, compression="zstd", compression_level=19)
    beside.replace(STORE)  # another process may be reading it


def _short(value: Any) -> Any:
    """Six digits of every number."""
    if isinstance(value, dict):
        return {name: _short(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_short(one) for one in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value
