"""Runs that the tests of the page read and spoil."""

from __future__ import annotations

import shutil
from pathlib import Path


def runs_of(folder: Path) -> list[Path]:
    return [folder / "runs" / name for name in ("most-popular", "lightgcn", "dpaa")]


def copy_of(run: Path, place: Path) -> Path:
    return Path(shutil.copytree(run, place))
