"""Results become tables: mean ± deviation over seeds, one row per label."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dpaa.experiments.run import RunResult


def mean_and_deviation(values: Sequence[float]) -> str:
    """`.1471 ± .0134`; the deviation is over seeds (n − 1), left out for one run."""
    text = f"{np.mean(values):.4f}"
    return f"{text} ± {np.std(values, ddof=1):.4f}" if len(values) > 1 else text


def values_of(results: Iterable[RunResult], data: str, label: str, overlap: str, metric: str) -> list[float]:
    """A metric over the seeds."""
    found = (one.metrics[overlap][metric] for one in results if one.data == data and one.label == label)
    return [float("nan") if value is None else value for value in found]


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)
