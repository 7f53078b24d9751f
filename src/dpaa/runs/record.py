"""What a run holds: a fitted method with the ids and pairs it was made from."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
from numpy.typing import NDArray

from dpaa.data.pairs import Pairs
from dpaa.methods.base import Method


@dataclass(frozen=True, eq=False)
class RunRecord:
    """All that is written to a run folder and read from it; `Model` adds what can be done with it."""

    method: Method
    user_ids: pl.Series
    """Row i = index i, ascending."""
    item_ids: pl.Series
    train: Pairs
    """Training pairs: what a user has already seen."""
    candidates: NDArray[Any] | None = None
    """Items that may be recommended; None = all."""
    manifest: dict[str, Any] = field(default_factory=dict)
    path: Path | None = None
    edges: Path | None = None
    """The message weights of a loaded run, which only their file knows."""
