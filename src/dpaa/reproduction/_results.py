"""Stored results: a JSON file each, or rows of one Parquet file per kind, as they are committed.

results/severity/dpaa-0954f188465674ce.json      written atomically, one by one, so that a kill loses none
results/severity.parquet                         `scripts/pack_results.py`: a row per result, with its key and JSON
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Generic, TypeVar

import polars as pl
from pydantic import BaseModel, ConfigDict, NonNegativeInt

from dpaa._io import LARGE_JSON, as_json, check_within, read_text, write_file
from dpaa._text import parse_json
from dpaa.data.parquet import read_parquet
from dpaa.errors import InputError, reason
from dpaa.reproduction._paper import FIRST

Metrics = dict[str, float | None]
"""Metric → value; None where it is undefined."""
AGAIN = "remove it to recompute it"


class Stored(BaseModel):
    """What is kept of a training or a study; the names of fields are those of the committed results."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")  # fields of earlier versions
    data: str
    method: str
    settings: dict[str, Any]
    """Hyperparameters."""
    protocol: str = FIRST
    """Of the budget; results without one were made with the first."""


class RunResult(Stored):
    """Metrics of one training on the test split, under each overlap convention."""

    label: str
    seed: NonNegativeInt
    metrics: dict[str, Metrics]
    """By convention; empty if the training failed, and then `details["failed"]` says why."""
    details: dict[str, Any]
    """Fingerprint of the data, best epoch, validation recall, seconds, versions."""

    def value(self, metric: str, overlap: str = "drop") -> float | None:
        """One metric under a convention; None if it is undefined or the training failed."""
        value = self.metrics.get(overlap, {}).get(metric)
        return value if value is not None and math.isfinite(value) else None


class Study(Stored):
    """Hyperparameters that validation chose."""

    fingerprint: str
    valid: float
    """Validation recall@20 of the best trial."""
    trials: NonNegativeInt
    seconds: float
    fixed: dict[str, Any]
    """Hyperparameters that were not searched."""
    tuning: dict[str, Any]
    """`Tuning.effort` of the budget."""
    tried: list[dict[str, Any]]
    """Every trial: hyperparameters, validation recall, state, seconds."""


S = TypeVar("S", bound=Stored)


@dataclass(frozen=True)
class ResultStore(Generic[S]):
    """The results of one kind: separate files take precedence over rows of the Parquet file.

    Parameters
    ----------
    folder : of all results
    kind : `overall`, `severity` or `tuned`
    model : its class
    """

    folder: Path
    kind: str
    model: type[S]

    def file(self, key: str) -> Path:
        """Where a new result is written."""
        return self.folder / self.kind / f"{key}.json"

    def read(self, key: str) -> S | None:
        """A result, or None if there is none; one that is damaged is an `InputError`."""
        file, table = self.file(key), self.folder / f"{self.kind}.parquet"
        where, text = str(file), None
        if file.exists():
            text = read_text(file, LARGE_JSON)
        elif table.exists():
            where, text = f"{table}, row {key},", _packed_results(table, table.stat().st_mtime_ns).get(key)
        try:
            return None if text is None else self.model.model_validate(parse_json(text))
        except ValueError as error:
            why = " ".join(str(error).split())[:150]
            raise InputError(f"{where} is not a readable result ({why}); {AGAIN}") from None

    def write(self, key: str, result: S) -> None:
        """Store a result, atomically."""
        check_within(self.folder / self.kind, self.folder)
        content = as_json(result.model_dump(exclude_unset=True), indent=1)
        write_file(self.file(key), content, "free some space and call again", make_folders=True)


@lru_cache(maxsize=8)
def _packed_results(file: Path, _changed: int) -> dict[str, str]:
    """Key → JSON; read again when the file has changed."""
    try:
        table = read_parquet(file, ["key", "json"]).select(pl.col("key", "json").cast(pl.String))
        return dict(table.drop_nulls().iter_rows())
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f"{file} is not a readable file of results ({reason(error)}); restore it") from None
