"""The data: how few items have most of the interactions."""

from __future__ import annotations

from dpaa.evaluation.concentration import head, share_of
from dpaa.report.charts import concentration, long_tail
from dpaa.report.inputs import Family, Inputs
from dpaa.report.markup import Markup, tag
from dpaa.report.parts import Figure, Section, bullets, paragraph, percent, tiles


def section(inputs: Inputs) -> Section:
    """A pair of curves per dataset."""
    parts: list[Figure | Markup] = []
    for place, family in enumerate(inputs.families):
        parts += _of_family(family, f"-{place + 1}" if place else "", len(inputs.families) > 1)
    return Section("data", "The data: a long tail", "Data", parts)


def _of_family(family: Family, suffix: str, named: bool) -> list[Figure | Markup]:
    counts, popular = family.counts, family.popular
    top = share_of(head(counts), counts)
    once = int((counts <= 1).sum())
    n_users = family.dataset.n_users if family.dataset is not None else len(family.runs[0].model.user_ids)
    of = f" of {family.name}" if named else ""
    numbers = tiles(
        [
            (f"{n_users:,}", "users"),
            (f"{len(counts):,}", "items"),
            (f"{int(counts.sum()):,}", "training interactions"),
            (percent(top, 0), "of them go to the top fifth of the items"),
            (percent(float(popular.mean()), 0), "of the items (“popular”) have 80 % of them"),
            (f"{once:,}", "items with at most one interaction"),
        ]
    )
    parts: list[Figure | Markup] = [tag("h3", f"Dataset {family.name}")] if named else []
    parts += [
        paragraph(
            "A recommender learns from what people did before, and people mostly did things with what they were shown. "
            "The first question is therefore how lopsided the training log is. Only training data is counted here."
        ),
        numbers,
        Figure(
            f"long-tail{suffix}",
            f"The long tail{of}",
            f"Interactions per item, most popular first, on logarithmic axes. {int(popular.sum()):,} popular items "
            f"have 80 % of the interactions, {len(counts) - int(popular.sum()):,} niche items the rest.",
            "Every item is a point on the line, the most popular at the left. Each step of the grid is ten times more. "
            "A steep line means that few items have nearly everything. “Popular” are the most used items that together "
            "have 80 % of the interactions; all others are “niche”, also those never used.",
            lambda look: long_tail(counts, look),
        ),
        Figure(
            f"concentration{suffix}",
            f"How concentrated the log{of} is",
            "Cumulative share of interactions against share of items. The top fifth of the items has "
            f"{percent(top, 0)}.",
            "Go right until the share of items you care for, then up to the line: that is the share of all "
            "interactions these items have. If every item were used equally often, the line would follow the dashed "
            "diagonal; the further it bends to the upper left, the more the log is about a few items.",
            lambda look: concentration(counts, look),
        ),
    ]
    if family.dataset is not None and family.dataset.notes:
        parts.append(paragraph("What to know about this dataset:"))
        parts.append(bullets(list(family.dataset.notes)))
    return parts
