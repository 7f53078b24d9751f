"""What a run says of itself, in `manifest.json` and `metrics.json`: anybody's, so what is relied on is checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from dpaa.data.dataset import Dataset, read_dataset
from dpaa.errors import InputError


class Told(BaseModel):
    """What is relied on is of these types; whatever else is there may hold anything."""

    model_config = ConfigDict(frozen=True, strict=True, extra="allow")


class TrainedOn(Told):
    """The dataset: what is in it, and where it lay."""

    name: str | None = None
    fingerprint: str | None = None
    path: str | None = None

    def read(self, run: Path) -> Dataset:
        """It is still there, or the call has to name it."""
        if not self.path:
            raise InputError(f"{run} does not say where its dataset is; name it with --dataset")
        if not Path(self.path).exists():
            raise InputError(f"the dataset of {run} is no longer at {self.path}; name it with --dataset")
        return read_dataset(self.path)


class Manifest(Told):
    """`manifest.json`."""

    dataset: TrainedOn
    files: dict[str, str] = {}
    """Digests of the run's other files; none in a run of before files were bound."""


class Measured(Told):
    """`metrics.json`."""

    metrics: dict[str, Any]
    protocol: dict[str, Any]
    model: str | None = None
    """Digest of the model they were measured with; none in a file of before models were bound."""


WRONG = {"dataset": "does not say what its dataset is", "files": "has no list of files"}
"""Field of a manifest → what is said of the file where it is missing or of another type."""
