"""A trial as it is told, and the file of the best: nothing here needs Optuna."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpaa.files import read_bytes

TRAINED = ("complete", "pruned", "diverged")
"""States of a trial that cost a training."""


@dataclass(frozen=True)
class Trial:
    """One line of `trials.jsonl`."""

    number: int
    state: str
    """`complete`; `pruned`: stopped, being worse than the median of the others; `diverged`: the loss became no number;
    `repeated`: settings already known, not trained; `lost`: its process ended; `running`."""
    settings: dict[str, Any]
    """What was searched; the rest is in `study.json`."""
    value: float | None
    """What is searched for, validation recall@20 unless another metric is named, of the finished model; recall@20 of
    the best epoch so far where it was pruned."""
    seconds: float | None
    best_epoch: int | None = None
    curve: list[float] = field(default_factory=list)
    """Validation recall@20 after each epoch."""
    same_as: int | None = None
    """The trial whose result was taken over."""
    diverged: str | None = None
    """What was said when the loss became no number."""
    metrics: dict[str, float] = field(default_factory=dict)
    """All that the search looks at, of the finished model on validation."""


def best_toml(method: str, settings: Mapping[str, Any], best: Trial, tried: int, name: str = "best.toml") -> str:
    """The text of `best.toml`: the best settings, for `dpaa train --config`."""
    found = best.metrics or {"recall@20": best.value or 0.0}
    lines = [
        f"# trial {best.number} of {tried}, validation {', '.join(f'{key} {one:.6f}' for key, one in found.items())}",
        f"# dpaa train DATASET --config {name} --out RUN",
        f'method = "{method}"',
        *(f"{name} = {json.dumps(value)}" for name, value in settings.items()),
    ]
    return "\n".join(lines) + "\n"


def trials_behind(config: Path) -> int:
    """How many settings were tried to find those of a `best.toml`, wherever it was copied; 0 for any other file."""
    found = re.match(rb"# trial \d+ of (\d{1,9}),", read_bytes(config, 100, whole=False))
    return int(found[1]) if found else 0
