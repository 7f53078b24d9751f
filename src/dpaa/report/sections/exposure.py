"""Exposure: what share of the lists goes to rare and to popular items, before (the log) and after."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpaa.report.charts import Line, curves
from dpaa.report.inputs import Family, Inputs
from dpaa.report.parts import Figure, Section, share, suffix, table
from dpaa.report.rendering import render
from dpaa.report.sections.metrics import place_of

LOG = "the log (what people did before)"
TENTHS = range(1, 11)
Shares = dict[str, tuple[list[float], int | None]]
"""By name: a share per popularity tenth, and the place in the palette."""


def section(inputs: Inputs) -> Section:
    """A figure per dataset with runs."""
    families = [family for family in inputs.families if family.runs]
    figures = [_figure(family, suffix(place), len(families) > 1) for place, family in enumerate(families)]
    content = render("exposure.html", drawn=list(zip(families, figures, strict=True)))
    return Section("exposure", "Who gets shown", "Exposure", content, figures)


def shares(family: Family, weights: NDArray[np.float64] | NDArray[np.int64]) -> list[float]:
    """Share of the total in each popularity tenth, rare → popular; items without training pair are in none."""
    inside = family.deciles >= 0
    per_decile = np.bincount(family.deciles[inside], weights[inside], minlength=10)
    return [float(value) for value in per_decile / max(weights.sum(), 1)]


def by_tenth(name: str, title: str, description: str, y: str, found: Shares) -> Figure:
    """Shares by popularity tenth as lines."""
    lines = [Line(label, list(map(float, TENTHS)), values, place) for label, (values, place) in found.items()]
    x = "popularity tenth (1 = rarest items, 10 = most popular)"
    return Figure(
        name,
        title,
        description,
        lambda theme: curves(lines, theme, x, y, percent="y", dots=True, whole=True),
        table(
            f"{y[:1].upper()}{y[1:]} by popularity tenth (1 = rarest)",
            ["share in", *map(str, TENTHS)],
            [[label, *map(share, values)] for label, (values, _) in found.items()],
        ),
    )


def _figure(family: Family, suffix: str, named: bool) -> Figure:
    found: Shares = {LOG: (shares(family, family.counts), None)}
    found |= {run.name: (shares(family, run.exposure), place_of(run, family.runs)) for run in family.runs}
    last = "; ".join(f"{name} {values[-1]:.0%}" for name, (values, _) in list(found.items())[:12])
    return by_tenth(
        f"exposure-by-popularity{suffix}",
        f"Exposure by popularity{f' on {family.name}' if named else ''}",
        f"Share of exposure by popularity tenth of the items, before and after. Most popular tenth: {last}.",
        "share of exposure",
        found,
    )
