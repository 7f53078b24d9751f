"""Winners and losers: the items whose exposure changes most."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

from dpaa.report.inputs import Inputs, Run
from dpaa.report.parts import Section, moved_items
from dpaa.report.rendering import render

SHOWN = 8
"""Items on each side."""
MOST = 6
"""Runs with tables."""


def section(inputs: Inputs) -> Section:
    """Two tables per run: against the run it is measured by, or against the log."""
    runs = [run for run in inputs.runs if run.method != "most-popular" or len(run.family.runs) == 1]
    content = render("items.html", tables=[_tables(run) for run in runs[:MOST]])
    return Section("items", "Winners and losers among items", "Items", content)


def _tables(run: Run) -> tuple[str, list[Markup]]:
    """What is compared; winners and losers."""
    family = run.family
    reference = family.reference(run)
    if reference is not None and reference.method != "most-popular" and run.method != "lightgcn":
        against, before_is, before = reference.name, reference.name, reference.exposure.astype(np.float64)
    else:
        against, before_is = "the log", "by their share of the log"
        before = family.counts * (run.exposure.sum() / max(family.counts.sum(), 1))
    change = run.exposure - before
    order = np.argsort(change, kind="stable").tolist()
    winners = [item for item in order[::-1][:SHOWN] if change[item] > 0]
    losers = [item for item in order[:SHOWN] if change[item] < 0]
    group = np.where(family.popular, "popular", "niche")
    lists = f"places in the lists of {family.k} of {family.users_in_words}"
    tables = [
        moved_items(
            f"{side}: {lists}; before = {before_is}, after = {run.name}",
            [
                (family.shown(item), family.counts[item], group[item], before[item], run.exposure[item])
                for item in items
            ],
        )
        for side, items in (("Winners", winners), ("Losers", losers))
    ]
    return f"{run.name} against {against}", tables
