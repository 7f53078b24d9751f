"""Summary: what changes from a run to the one it is measured against."""

from __future__ import annotations

from dpaa.report.inputs import Inputs, Run
from dpaa.report.parts import Section, change
from dpaa.report.rendering import render
from dpaa.report.sections.metrics import cautions, measured_alike

MOST = 8
"""Sentences; the table has the rest."""
SHOWN = {
    "ndcg@{}": ("accuracy (NDCG)", ".4f"),
    "recall@{}/niche": ("recall of niche items", ".4f"),
    "arp@{}": ("mean popularity of what is recommended", ",.0f"),
    "coverage@{}": ("items that anybody is shown", ".0%"),
}


def section(inputs: Inputs) -> Section:
    """A sentence per run."""
    sentences, notes = [], []
    for _, runs in measured_alike(inputs):
        pairs = [(run, run.family.reference(run)) for run in runs if run.method not in ("most-popular", "lightgcn")]
        known = [(run, other) for run, other in pairs if other is not None and other in runs]
        sentences += [(run.name, other.name, _changes(run, other)) for run, other in known]
        notes += cautions([run for run in runs if any(run in pair for pair in known)])
    content = render("summary.html", sentences=sentences[:MOST], notes=notes, inputs=inputs)
    return Section("summary", "Summary", "Summary", content)


def _changes(run: Run, reference: Run) -> str:
    told = []
    for pattern, (name, form) in SHOWN.items():
        metric = pattern.format(run.protocol.largest_k)
        before, after = reference.metrics.get(metric), run.metrics.get(metric)
        if before is not None and after is not None:
            relative = "" if form.endswith("%") else f" ({change(before, after - before)})"
            told.append(f"{name} {before:{form}} → {after:{form}}{relative}")
    return "; ".join(told)
