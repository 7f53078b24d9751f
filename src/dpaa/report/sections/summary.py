"""In short: what changes from a run to the one it is measured against."""

from __future__ import annotations

from dpaa.report.inputs import Inputs, Run
from dpaa.report.markup import Markup, tag
from dpaa.report.parts import Figure, Section, bullets, change, code, paragraph
from dpaa.report.sections.metrics import cautions, longest, measured_alike

MOST = 8
"""Sentences; the table has the rest."""


def section(inputs: Inputs) -> Section:
    """A sentence per run."""
    sentences, notes = [], []
    for _, runs in measured_alike(inputs):
        named = []
        for run in runs:
            reference = run.family.reference(run)
            if reference in runs and run.method not in ("most-popular", "lightgcn"):
                sentences.append(_sentence(run, reference))
                named += [run, reference]
        notes += cautions([run for run in runs if run in named])
    parts: list[Figure | Markup] = []
    if sentences:
        parts.append(bullets(sentences[:MOST]))
        parts += notes
        parts.append(
            paragraph(
                "These are differences of averages on one test split. Whether they are more than chance is for ",
                code("dpaa compare"),
                " to say",
                ["; ", tag("a", "its verdict stands below", href="#comparison")] if inputs.comparisons else None,
                ".",
            )
        )
    if inputs.notes:
        parts.append(tag("div", paragraph("Left out, and why:"), bullets(list(inputs.notes)), class_="notes"))
    return Section("summary", "In short", "In short", parts)


def _sentence(run: Run, reference: Run | None) -> list[object]:
    assert reference is not None
    k = longest(run)
    changes = []
    for metric, name in ((f"ndcg@{k}", "accuracy (NDCG)"), (f"recall@{k}/niche", "recall of niche items")):
        before, after = reference.metrics.get(metric), run.metrics.get(metric)
        if before is not None and after is not None:
            changes.append(f"{name} {before:.4f} → {after:.4f} ({change(before, after - before)})")
    for metric, name in ((f"arp@{k}", "mean popularity of what is recommended"),):
        before, after = reference.metrics.get(metric), run.metrics.get(metric)
        if before is not None and after is not None:
            changes.append(f"{name} {before:,.0f} → {after:,.0f} ({change(before, after - before)})")
    before, after = reference.metrics.get(f"coverage@{k}"), run.metrics.get(f"coverage@{k}")
    if before is not None and after is not None:
        changes.append(f"items that anybody is shown {before:.0%} → {after:.0%}")
    return [tag("strong", run.name), " against ", tag("strong", reference.name), f": {'; '.join(changes)}."]
