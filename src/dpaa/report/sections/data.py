"""The data: how few items have most of the interactions."""

from __future__ import annotations

from dpaa.report.charts import concentration, long_tail
from dpaa.report.inputs import Family, Inputs
from dpaa.report.parts import Figure, Section, suffix
from dpaa.report.rendering import percent, render


def section(inputs: Inputs) -> Section:
    """A pair of curves per dataset."""
    named = len(inputs.families) > 1
    drawn = [_figures(family, suffix(place), named) for place, family in enumerate(inputs.families)]
    content = render("data.html", named=named, drawn=list(zip(inputs.families, drawn, strict=True)))
    return Section("data", "The data: a long tail", "Data", content, [figure for pair in drawn for figure in pair])


def _figures(family: Family, suffix: str, named: bool) -> tuple[Figure, Figure]:
    counts, n_popular = family.counts, int(family.popular.sum())
    of = f" of {family.name}" if named else ""
    return (
        Figure(
            f"long-tail{suffix}",
            f"The long tail{of}",
            f"Interactions per item, most popular first, on logarithmic axes. {n_popular:,} popular items "
            f"have 80 % of the interactions, {len(counts) - n_popular:,} niche items the rest.",
            lambda theme: long_tail(counts, theme),
        ),
        Figure(
            f"concentration{suffix}",
            f"How concentrated the log{of} is",
            "Cumulative share of interactions against share of items. The top fifth of the items has "
            f"{percent(family.head_share, 0)}.",
            lambda theme: concentration(counts, theme),
        ),
    )
