"""Winners and losers: the items whose exposure changes most."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpaa.report.inputs import Family, Inputs, Run
from dpaa.report.markup import Markup, tag
from dpaa.report.parts import Cell, Figure, Head, Section, minus, shown_id, table

SHOWN = 8
"""Items on each side."""
MOST = 6
"""Runs with tables."""


def section(inputs: Inputs) -> Section:
    """Two tables per run: against the run it is measured by, or against the log."""
    parts: list[Figure | Markup] = []
    for run in [run for run in inputs.runs if run.method != "most-popular" or len(run.family.runs) == 1][:MOST]:
        reference = run.family.reference(run)
        if reference is not None and reference.method != "most-popular" and run.method != "lightgcn":
            parts.append(_tables(run, reference.name, reference.exposure.astype(np.float64)))
        else:
            counts = run.family.counts
            parts.append(_tables(run, None, counts * (run.exposure.sum() / max(counts.sum(), 1))))
    if parts:
        parts.insert(
            0,
            tag(
                "p",
                tag("strong", "How to read it. "),
                "Lists have a fixed length, so an item can only win places that another loses. The tables name the "
                "items whose number of places changes most: from one run to another, or from what their share of the "
                "log would give them to what the run gives them. “Used” is how often the item was used in training; "
                "popular items are those that together have 80 % of the interactions, niche items the others.",
                class_="reading",
            ),
        )
    return Section("items", "Winners and losers among items", "Items", parts)


def _tables(run: Run, reference: str | None, before: NDArray[np.float64]) -> Markup:
    change = run.exposure - before
    order = np.argsort(change, kind="stable")
    winners = [int(item) for item in order[::-1][:SHOWN] if change[item] > 0]
    losers = [int(item) for item in order[:SHOWN] if change[item] < 0]
    against = f"{reference}" if reference else "the log"
    title = f"{run.name} against {against}"
    lists = f"places in the lists of {run.family.k} of {run.family.users_in_words}"
    before_is = f"before = {reference}" if reference else "before = by their share of the log"
    caption = f"{lists}; {before_is}, after = {run.name}"
    return tag(
        "div",
        tag("h3", title),
        tag(
            "div",
            _table(run.family, f"Winners: {caption}", run, winners, before),
            _table(run.family, f"Losers: {caption}", run, losers, before),
            class_="pair",
        ),
    )


def _table(family: Family, caption: str, run: Run, items: list[int], before: NDArray[np.float64]) -> Markup:
    heads = [
        Head("item", numeric=False),
        Head("used", "interactions in training"),
        Head("group", numeric=False),
        Head("before"),
        Head("after"),
        Head("change"),
    ]
    rows = []
    for item in items:
        after = float(run.exposure[item])
        rows.append(
            [
                Cell(shown_id(run.model.item_ids[item]), str(run.model.item_ids[item])[:80]),
                Cell(f"{family.counts[item]:,.0f}", float(family.counts[item])),
                Cell("popular" if family.popular[item] else "niche", str(family.popular[item])),
                Cell(f"{before[item]:,.0f}", float(before[item])),
                Cell(f"{after:,.0f}", after),
                Cell(minus(f"{after - before[item]:+,.0f}"), float(after - before[item])),
            ]
        )
    return table(caption, heads, rows)
