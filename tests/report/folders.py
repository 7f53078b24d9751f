"""Runs that the tests of the page read and spoil."""

from __future__ import annotations

import shutil
from pathlib import Path

from dpaa._io import as_json
from dpaa.evaluation.evaluator import Evaluation


def runs_of(folder: Path) -> list[Path]:
    return [folder / "runs" / name for name in ("most-popular", "lightgcn", "dpaa")]


def copy_of(run: Path, place: Path) -> Path:
    return Path(shutil.copytree(run, place))


def put_metrics(run: Path, found: Evaluation) -> None:
    """As earlier versions did: those of other lists than the run's own, too."""
    (run / "metrics.json").write_text(as_json(found.as_json()))
