"""Stored results: a JSON file each while a reproduction runs, one Parquet file per kind once they are packed.

results/severity/dpaa-0954f188465674ce.json      loose: written atomically, one by one, so that a kill loses none
results/severity.parquet                         packed: a row per result, with columns to filter by and its JSON
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, TypeVar

import polars as pl
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dpaa._io import LARGE_JSON, as_json, check_within, locked, read_json, read_text, remove_empty, write_file
from dpaa._text import parse_json
from dpaa.data.parquet import parquet_schema, read_parquet
from dpaa.errors import InputError, reason
from dpaa.reproduction._budget import FIRST

Metrics = dict[str, float | None]
"""Metric → value; None where it is undefined."""
Count = Annotated[int, Field(ge=0, lt=2**63)]
KEY, JSON = "key", "json"
"""Columns of a packed file: the name and the content of a loose file."""
RESTORE = "restore the file, or remove it to have its results made again"
NO_SPACE = "make room and call again"


class Stored(BaseModel):
    """What is kept of a training or a study."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")  # fields of earlier versions
    what: ClassVar[str]
    remedy: ClassVar[str]
    data: str
    method: str
    settings: dict[str, Any]
    """Hyperparameters."""
    protocol: str = FIRST
    """Of the budget; results without one were made with the first."""

    def columns(self) -> dict[str, Any]:
        """Columns of the packed file besides key and JSON."""
        hyperparameters = json.dumps(self.settings)
        return {"data": self.data, "method": self.method, "protocol": self.protocol, "settings": hyperparameters}


class RunResult(Stored):
    """Metrics of one training on the test split, under each overlap convention."""

    what = "result"
    remedy = "remove it to run it again"
    label: str
    seed: Count
    metrics: dict[str, Metrics]
    """By convention; empty if the training failed, and then `details["failed"]` says why."""
    details: dict[str, Any]
    """Fingerprint of the data, best epoch, validation recall, seconds, versions."""

    @property
    def failed(self) -> str | None:
        """Why there are no metrics."""
        return self.details.get("failed")

    def value(self, metric: str, overlap: str = "drop") -> float | None:
        """One metric under a convention; None if it is undefined or the training failed."""
        value = self.metrics.get(overlap, {}).get(metric)
        return value if value is not None and math.isfinite(value) else None

    def columns(self) -> dict[str, Any]:
        """With the main metrics of the convention `drop`; all others are in the JSON."""
        names = ("recall@20", "ndcg@20", "hit@20", "arp@20", "coverage@20")
        row = {"label": self.label, "seed": self.seed, "fingerprint": self.details.get("fingerprint")}
        return super().columns() | row | {name: self.value(name) for name in names}


class TunedSettings(Stored):
    """Hyperparameters that a study chose on validation."""

    what = "choice of settings"
    remedy = "remove it to tune again"
    fingerprint: str
    valid: float
    """Validation recall@20 of the best trial."""
    trials: Count
    seconds: float
    """Of the call that finished the study; each trial has its own as well."""
    fixed: dict[str, Any]
    """Hyperparameters that were not searched."""
    tuning: dict[str, Any]
    """`Tuning.effort` of the budget."""
    tried: list[dict[str, Any]]
    """Every trial: hyperparameters, validation recall, state, seconds."""

    def columns(self) -> dict[str, Any]:
        """With the validation recall of the choice."""
        study = {"fingerprint": self.fingerprint, "valid_recall@20": self.valid, "trials": self.trials}
        return super().columns() | study


S = TypeVar("S", bound=Stored)
KINDS: dict[str, type[Stored]] = {"overall": RunResult, "severity": RunResult, "tuned": TunedSettings}


@dataclass(frozen=True)
class ResultStore(Generic[S]):
    """The results of one kind: a loose file takes precedence over a row of the packed file."""

    folder: Path
    kind: str
    model: type[S]

    @property
    def loose(self) -> Path:
        """The folder of loose results."""
        return self.folder / self.kind

    @property
    def packed(self) -> Path:
        """The file of packed results."""
        return self.folder / f"{self.kind}.parquet"

    @property
    def keys(self) -> list[str]:
        """Of all results."""
        return sorted({file.stem for file in self.loose.glob("*.json")} | self._texts().keys())

    def location(self, key: str) -> str:
        """File, or file and row, for a message about a result."""
        file = self.loose / f"{key}.json"
        return str(file) if file.exists() else f"{self.packed}, row {key},"

    def read(self, key: str) -> S | None:
        """A result, or None if there is none."""
        file = self.loose / f"{key}.json"
        if file.exists():
            return self._checked(key, read_json(file, LARGE_JSON, self.model.remedy), self.model.remedy)
        text = self._texts().get(key)
        if text is None:
            return None
        try:
            content = parse_json(text)
        except ValueError as error:
            raise self._unreadable(key, reason(error), RESTORE) from None
        return self._checked(key, content, RESTORE)

    def _checked(self, key: str, content: Any, remedy: str) -> S:
        try:
            return self.model.model_validate(content)
        except ValidationError as error:
            first = error.errors()[0]
            where, message = ".".join(map(str, first["loc"])), first["msg"]
            said = f"{where}: {message[:1].lower()}{message[1:]}"
            raise self._unreadable(key, said, remedy) from None

    def _unreadable(self, key: str, why: str, remedy: str) -> InputError:
        return InputError(f"{self.location(key)} is not a readable {self.model.what} ({why}); {remedy}")

    def write(self, key: str, result: S) -> None:
        """Store a result as a loose file, atomically."""
        target = check_within(self.loose, self.folder) / f"{key}.json"
        content = as_json(result.model_dump(exclude_unset=True), indent=1)
        write_file(target, content, NO_SPACE, make_folders=True)

    def pack(self) -> int:
        """Move the loose results into the packed file and return how many there were.

        The packed file is written before the first loose one is removed: a kill leaves a result twice, never nowhere.
        """
        if not self.loose.is_dir():
            return 0
        with locked(self.folder / f".{self.kind}.lock", wait=True):
            files = {file.stem: file for file in self.loose.glob("*.json")}
            texts = self._texts() | {key: read_text(file, LARGE_JSON) for key, file in files.items()}
            results = {key: result for key in sorted(texts) if (result := self.read(key))}
            rows = [{KEY: key} | result.columns() | {JSON: texts[key]} for key, result in results.items()]
            if files:
                table = pl.DataFrame(rows, infer_schema_length=None)
                write_file(check_within(self.packed, self.folder), table.write_parquet, NO_SPACE)
            for file in files.values():
                file.unlink()
            remove_empty([self.loose])
        return len(files)

    def _texts(self) -> dict[str, str]:
        """Key → JSON of the packed results; read again when the file has changed."""
        if not self.packed.exists():
            return {}
        about = self.packed.stat()
        return _packed_texts(self.packed, about.st_mtime_ns, about.st_size)


@lru_cache(maxsize=8)
def _packed_texts(file: Path, _changed: int, _size: int) -> dict[str, str]:
    try:
        types = parquet_schema(file)
        if any(types.get(name) != pl.String for name in (KEY, JSON)):
            raise pl.exceptions.SchemaError(f"it has no columns {KEY!r} and {JSON!r} of text")
        table = read_parquet(file, [KEY, JSON])
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f"{file} is not a readable file of packed results ({reason(error)}); {RESTORE}") from None
    return dict(table.select(KEY, JSON).drop_nulls().iter_rows())


def pack_results(folder: Path) -> int:
    """Move all loose results into packed files, one per kind.

    Parameters
    ----------
    folder : the folder of results

    Returns
    -------
    how many loose results there were
    """
    return sum(ResultStore(folder, kind, model).pack() for kind, model in KINDS.items())
