"""Results: a JSON file for each while a reproduction runs, one Parquet file per kind once they are packed.

results/severity/dpaa-0954f188465674ce.json      loose: written whole, one by one, so that a kill loses none
results/severity.parquet                         packed: a row per result, with columns to filter by and its JSON
"""

from __future__ import annotations

import json
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
from dpaa.methods.settings import first_error
from dpaa.reproduction.budget import FIRST

Metrics = dict[str, float | None]
"""Metric → value; None where there is none."""
Count = Annotated[int, Field(ge=0, lt=2**63)]
KEY, JSON = "key", "json"
"""Columns of a packed file: what a loose file has as its name and as its content."""
RESTORE = "restore the file, or remove it to have its results made again"


class Stored(BaseModel):
    """What is kept of a piece of work."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")
    what: ClassVar[str]
    remedy: ClassVar[str]
    data: str
    method: str
    settings: dict[str, Any]
    protocol: str = FIRST
    """How trainings were set up and tuned (`budget.py`); results that do not say were made with the first protocol."""
    imported: dict[str, str] | None = None
    """Of a result made elsewhere: who made it on what (`origin`), and the digest of the file it came in."""

    def columns(self) -> dict[str, Any]:
        """What a packed file can be filtered by."""
        settings = json.dumps(self.settings)
        return {"data": self.data, "method": self.method, "protocol": self.protocol, "settings": settings}


class Dialled(BaseModel):
    """Metrics of the test split with the popularity dial where validation puts it, under the convention `drop`."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")
    kappa: float
    metrics: Metrics


class RunResult(Stored):
    """What a training gave: metrics of the test split under each overlap convention."""

    what = "result"
    remedy = "remove it to run it again"
    label: str
    seed: Count
    metrics: dict[str, Metrics]
    """By convention; empty where the training failed, and then `details["failed"]` says why."""
    details: dict[str, Any]
    """Fingerprint, best epoch, validation recall, seconds, versions."""
    dial: Dialled | None = None
    """Not set in results of an earlier version."""

    @property
    def failed(self) -> str | None:
        """Why there are no metrics."""
        return self.details.get("failed")

    def columns(self) -> dict[str, Any]:
        """Metrics are those of the convention `drop`; all others are in the JSON."""
        drop = self.metrics.get("drop", {})
        accuracy = {name: drop.get(name) for name in ("recall@20", "ndcg@20", "hit@20", "arp@20", "coverage@20")}
        fingerprint = self.details.get("fingerprint")
        return super().columns() | {"label": self.label, "seed": self.seed, "fingerprint": fingerprint} | accuracy


class TunedSettings(Stored):
    """What a study found; the settings are those that were tuned."""

    what = "choice of settings"
    remedy = "remove it to tune again"
    fingerprint: str
    valid: float
    """Validation recall@20 of the best trial."""
    trials: Count
    seconds: float
    """Of the call that ended the study; those of each trial are with it."""
    fixed: dict[str, Any]
    """Settings that were not searched."""
    tuning: dict[str, Any]
    """The `Tuning` of the budget."""
    tried: list[dict[str, Any]]
    """Every trial: settings, validation recall, state, seconds."""

    def columns(self) -> dict[str, Any]:
        """With what the settings reached on validation."""
        further = {"fingerprint": self.fingerprint, "valid_recall@20": self.valid, "trials": self.trials}
        return super().columns() | further


S = TypeVar("S", bound=Stored)
KINDS: dict[str, type[Stored]] = {
    "overall": RunResult,
    "severity": RunResult,
    "readings": RunResult,
    "tuned": TunedSettings,
}


@dataclass(frozen=True)
class ResultStore(Generic[S]):
    """The results of one kind: loose ones are looked at first, then the packed file."""

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

    def place(self, key: str) -> str:
        """Where a result is, for a sentence about it."""
        file = self.loose / f"{key}.json"
        return str(file) if file.exists() else f"{self.packed}, row {key},"

    def read(self, key: str) -> S | None:
        """A result, or None where there is none."""
        file, remedy = self.loose / f"{key}.json", self.model.remedy
        if file.exists():
            return self._checked(read_json(file, LARGE_JSON, remedy), self.place(key), remedy)
        text = self._texts().get(key)
        return None if text is None else self.parse(text, self.place(key))

    def parse(self, text: str, place: str, remedy: str = RESTORE) -> S:
        """A result from its JSON, which was found in that place."""
        try:
            content = parse_json(text)
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{place} is not a readable {self.model.what} ({reason(error)}); {remedy}") from None
        return self._checked(content, place, remedy)

    def _checked(self, content: Any, place: str, remedy: str) -> S:
        try:
            return self.model.model_validate(content)
        except ValidationError as error:
            said = first_error(error)
        raise InputError(f"{place} is not a readable {self.model.what} ({said}); {remedy}")

    @property
    def keys(self) -> list[str]:
        """Of all results."""
        return sorted({file.stem for file in self.loose.glob("*.json")} | self._texts().keys())

    def write(self, key: str, result: S) -> None:
        """Keep a result: loose, whole or not at all."""
        target = check_within(self.loose, self.folder) / f"{key}.json"
        write_file(
            target,
            as_json(result.model_dump(exclude_unset=True), indent=1),
            "make room and call again",
            make_folders=True,
        )

    def pack(self) -> int:
        """Move the loose results into the packed file.  Returns how many there were.

        The packed file is written before the first loose one is removed: a kill leaves a result twice, never nowhere.
        """
        if not self.loose.is_dir():
            return 0
        with locked(self.folder / f".{self.kind}.lock", wait=True):
            files = {file.stem: file for file in self.loose.glob("*.json")}
            texts = self._texts() | {key: read_text(file, LARGE_JSON) for key, file in files.items()}
            found = {key: result for key in sorted(texts) if (result := self.read(key))}
            rows = [{KEY: key} | result.columns() | {JSON: texts[key]} for key, result in found.items()]
            if files:
                table = pl.DataFrame(rows, infer_schema_length=None)
                write_file(check_within(self.packed, self.folder), table.write_parquet, "make room and call again")
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
    """Move all loose results into packed files, one per kind.  Returns how many there were."""
    return sum(ResultStore(folder, kind, model).pack() for kind, model in KINDS.items())
