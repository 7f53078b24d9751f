"""DPAA against LightGCN, pair by pair: what belongs to one seed or one draw of the data is compared with its like."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from scipy import stats

from dpaa._text import counted
from dpaa.report.parts import minus
from dpaa.reproduction.results import RunResult
from dpaa.reproduction.tables import Cell, Quantity, Table

BASE = "lightgcn"
COMPARED = ("dpaa", "dpaa-as-printed", "dpaa-auto")
CONFIDENCE = 0.95


def interval(differences: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float, float]:
    """Mean of paired differences with Student's interval; no bounds for fewer than two."""
    values = np.asarray(differences, dtype=np.float64)
    mean = float(values.mean()) if len(values) else math.nan
    if len(values) < 2:
        return mean, math.nan, math.nan
    half = float(stats.t.ppf((1 + confidence) / 2, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values)))
    return mean, mean - half, mean + half


def in_words(differences: Sequence[float]) -> str:
    """`+0.0021 [+0.0007, +0.0035]`; a star where the interval leaves 0 out."""
    mean, low, high = interval(differences)
    if math.isnan(mean):
        return "–"
    told = f"{mean:+.4f}"
    if not math.isnan(low):
        told += f" [{low:+.4f}, {high:+.4f}]" + (" *" if low > 0 or high < 0 else "")
    return minus(told)


def pairs(results: Iterable[RunResult], label: str, base: str, data: str, what: Quantity) -> list[float]:
    """Differences between two rows on a dataset, seed by seed."""
    values: dict[str, dict[int, float]] = {label: {}, base: {}}
    for one in results:
        value = what.of(one)
        if one.data == data and one.label in values and value is not None:
            values[one.label][one.seed] = value
    return [value - values[base][seed] for seed, value in sorted(values[label].items()) if seed in values[base]]


def difference_table(
    name: str,
    where: str,
    results: Sequence[RunResult],
    columns: Mapping[str, tuple[str, Quantity]],
    same_data: bool = True,
) -> list[Table]:
    """DPAA's rows minus LightGCN over seeds; `columns`: title → dataset and quantity; none for a single seed.

    `same_data`: whether seeds are of training alone, or each has a draw of the data of its own.
    """
    rows = []
    for label in COMPARED:
        found = [pairs(results, label, BASE, data, what) for data, what in columns.values()]
        if any(found):
            rows.append((f"{label} − {BASE}", tuple(Cell(text=in_words(one)) for one in found)))
    if not rows:
        return []
    seeds = max(len(pairs(results, label, BASE, data, what)) for label in COMPARED for data, what in columns.values())
    if seeds < 2:
        return []
    whose = "of training on the same data" if same_data else "that draw the data too"
    title = f"{where}: DPAA against LightGCN, {counted(seeds, 'seed', 'seeds')} {whose}"
    note = f"Mean of the paired differences and its {CONFIDENCE:.0%} interval (Student's t); *: 0 is not in it."
    return [Table(name, title, "difference", tuple(columns), tuple(rows), notes=(note,))]


def draw_table(
    name: str, draws: Mapping[int, Sequence[RunResult]], severities: Sequence[float], what: Quantity
) -> list[Table]:
    """The same over draws of the severity data, one seed of training each."""
    rows = []
    for label in COMPARED:
        cells = []
        for severity in severities:
            found = [one for of_draw in draws.values() for one in pairs(of_draw, label, BASE, f"s={severity:g}", what)]
            cells.append(found)
        if any(cells):
            rows.append((f"{label} − {BASE}", tuple(Cell(text=in_words(one)) for one in cells)))
    if not rows:
        return []
    title = (
        f"{what.metric}: DPAA against LightGCN over {counted(len(draws), 'draw', 'draws')} of the data, one seed each"
    )
    note = (
        f"Mean of the paired differences and its {CONFIDENCE:.0%} interval (Student's t); *: 0 is not in it. Settings "
        "are those tuned on the first draw."
    )
    columns = tuple(f"s = {severity:g}" for severity in severities)
    return [Table(name, title, "difference", columns, tuple(rows), notes=(note,))]
