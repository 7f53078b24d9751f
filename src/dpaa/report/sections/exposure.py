"""Exposure: what share of the lists goes to rare and to popular items, before (the log) and after."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpaa.report.charts import Line, curves
from dpaa.report.inputs import Family, Inputs
from dpaa.report.markup import Markup
from dpaa.report.parts import Cell, Figure, Head, Section, percent, table
from dpaa.report.sections.metrics import place_of

HISTORY = "the log (what people did before)"


def section(inputs: Inputs) -> Section:
    """A figure per dataset with runs."""
    families = [family for family in inputs.families if family.runs]
    parts: list[Figure | Markup] = [
        _figure(family, f"-{place + 1}" if place else "", len(families) > 1) for place, family in enumerate(families)
    ]
    return Section("exposure", "Who gets shown", "Exposure", parts)


def shares(family: Family, weights: NDArray[np.float64] | NDArray[np.int64]) -> list[float]:
    """Share of the total in each popularity tenth, rare → popular; items without training pair are in none."""
    inside = family.deciles >= 0
    per_decile = np.bincount(family.deciles[inside], weights[inside], minlength=10)
    return [float(value) for value in per_decile / max(weights.sum(), 1)]


def _figure(family: Family, suffix: str, named: bool) -> Figure:
    found = {HISTORY: shares(family, family.counts)} | {run.name: shares(family, run.exposure) for run in family.runs}
    tenths = [float(tenth) for tenth in range(1, 11)]
    places = {run.name: place_of(run, family.runs) for run in family.runs}
    lines = [Line(name, tenths, values, places.get(name)) for name, values in found.items()]
    heads = [Head("lists of", numeric=False), *(Head(str(tenth)) for tenth in range(1, 11))]
    rows = [[Cell(name, name), *(Cell(percent(value), value) for value in values)] for name, values in found.items()]
    last = "; ".join(f"{name} {values[-1]:.0%}" for name, values in list(found.items())[:12])
    return Figure(
        f"exposure-by-popularity{suffix}",
        f"Exposure by popularity{f' on {family.name}' if named else ''}",
        f"Share of exposure by popularity tenth of the items, before and after. Most popular tenth: {last}.",
        "The items are sorted into ten equal groups by how often they were used in training: 1 holds the rarest, 10 "
        "the most popular. The dashed line is the share of past interactions in each group; the other lines are the "
        f"share of places in recommended lists ({family.k} for each of {family.users_in_words}). A line above the "
        "dashed one at 10 means that the recommender amplifies popularity: it shows popular items even more than "
        "people used them. Debiasing should move exposure from the right to the left.",
        lambda look: curves(
            lines,
            look,
            "popularity tenth (1 = rarest items, 10 = most popular)",
            "share of exposure",
            percent="y",
            dots=True,
            whole=True,
        ),
        table("Share of exposure by popularity tenth (1 = rarest)", heads, rows),
    )
