"""Sections for everybody: the verdict and what changes, and how skewed the data is."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np

from dpaa.debiasing import times
from dpaa.evaluation.metrics import explain
from dpaa.report._charts import EQUAL, POINTS, Line, curves, popularity_line
from dpaa.report._html import Figure, Section, change, minus, render, sentence, signed, suffix
from dpaa.report._inputs import Family, Inputs, Run
from dpaa.report._partial import Partial
from dpaa.report._runs import cautions, measured_alike

MOST_SENTENCES = 8
SHOWN = {
    "ndcg@{}": ("accuracy (NDCG)", ".4f"),
    "recall@{}/niche": ("recall of niche items", ".4f"),
    "arp@{}": ("mean popularity of what is recommended", ",.0f"),
    "coverage@{}": ("items that anybody is shown", ".0%"),
}
GROWTH = {"recall@{}/niche": "niche items found", "ndcg@{}": "accuracy"}


def summary(inputs: Inputs) -> Section:
    """The verdict with its numbers; then a sentence per run."""
    pairs, notes = [], []
    for runs in measured_alike(inputs):
        others = [(run, run.family.reference(run)) for run in runs if run.method not in ("most-popular", "lightgcn")]
        known = [(run, other) for run, other in others if other is not None and other in runs]
        pairs += known
        notes += cautions([run for run in runs if any(run in pair for pair in known)])
    verdicts = [_frontier_verdict(content) for content in inputs.frontiers] or [_run_verdict(inputs, pairs)]
    sentences = [(run.name, other.name, _changes(run, other)) for run, other in pairs][:MOST_SENTENCES]
    content = render("summary.html", verdicts=verdicts, sentences=sentences, notes=notes, inputs=inputs)
    return Section("summary", "In short", "In short", content)


def _frontier_verdict(content: Partial) -> dict[str, Any]:
    base, chosen = content.part("base"), content.part("chosen")
    sentences, users = content.texts("sentences"), content.whole("users")
    words = f"{sentence(content.text('headline') or next(iter(sentences), ''))}."
    if chosen.text("name") == base.text("name"):
        return {"words": words, "how": "; ".join(sentences[:1]), "tiles": []}
    tiles = []
    confirmed = content.part("confirmation").part("change").number("estimate")
    if isfinite(confirmed):
        title = "accuracy, measured on held-out users"
        tiles.append({"what": title, "after": "", "change": signed(confirmed), "better": confirmed > 0})
    elif isfinite(base.number("accuracy")):
        tiles.append(_tile("accuracy", base.number("accuracy"), chosen.number("accuracy"), ".4f", "high"))
    goals = {goal.text("metric"): goal.text("better") for goal in content.parts("goals")}
    named = {
        pattern.format(content.whole("k") or 20): shown for pattern, shown in SHOWN.items() if "ndcg" not in pattern
    }
    for metric in dict.fromkeys((*goals, *named)):
        before, after = base.part("metrics").number(metric), chosen.part("metrics").number(metric)
        title, form = named.get(metric, (metric, ".4g"))
        if isfinite(before) and isfinite(after):
            tiles.append(_tile(title, before, after, form, goals.get(metric, _direction(metric))))
    measured = "validation users" if users is None else f"{users:,} validation users"
    how = f"{chosen.text('name')} in place of {base.text('name')}, measured on {measured}."
    return {"words": words, "how": how, "tiles": tiles}


def _run_verdict(inputs: Inputs, pairs: list[tuple[Run, Run]]) -> dict[str, Any]:
    """Of the last run that can be compared with another; without one, of the log."""
    words, tiles = "", []
    if pairs:
        run, other = pairs[-1]
        tiles = [
            _tile(title, before, after, form, _direction(metric))
            for metric, title, form, before, after in _both(run, other)
        ]
        growth = [
            f"{title} {times(other.metrics[metric], run.metrics[metric])}"
            for pattern, title in GROWTH.items()
            if (metric := pattern.format(run.k)) in other.metrics and metric in run.metrics
        ]
        words = f"{run.name} in place of {other.name}: {', '.join(growth)}." if growth else ""
    elif inputs.families:
        family = inputs.families[0]
        words = f"The top fifth of the items has {family.head_share:.0%} of the interactions of {family.name}."
    return {"words": words, "how": "", "tiles": tiles}


def _both(run: Run, other: Run) -> list[tuple[str, str, str, float, float]]:
    """Metric, title, format, value of the other run and of this one, where both have it."""
    metrics = [(pattern.format(run.k), *shown) for pattern, shown in SHOWN.items()]
    return [
        (metric, title, form, other.metrics[metric], run.metrics[metric])
        for metric, title, form in metrics
        if metric in other.metrics and metric in run.metrics
    ]


def _changes(run: Run, other: Run) -> str:
    return "; ".join(
        f"{title} {minus(format(before, form))} → {minus(format(after, form))}"
        + ("" if form.endswith("%") else f" ({change(before, after - before)})")
        for _, title, form, before, after in _both(run, other)
    )


def _direction(metric: str) -> str:
    known = explain(metric)
    return "" if known is None else known.better


def _tile(title: str, before: float, after: float, form: str, better: str) -> dict[str, Any]:
    """A number before and after; `better` is None where it stays, or no direction is better."""
    gain = {"high": after - before, "low": before - after, "zero": abs(before) - abs(after)}.get(better, 0.0)
    return {
        "what": title,
        "before": minus(format(before, form)),
        "after": minus(format(after, form)),
        "change": times(before, after) if before > 0 and better == "high" else change(before, after - before),
        "better": None if abs(gain) < 1e-12 else gain > 0,
    }


# ---------------------------------------------------------------------- data


def data(inputs: Inputs) -> Section:
    """How few items have most of the interactions: two curves per dataset."""
    named = len(inputs.families) > 1
    drawn = [(family, _curves(family, suffix(index), named)) for index, family in enumerate(inputs.families)]
    content = render("data.html", named=named, drawn=drawn)
    return Section("data", "The data: a long tail", "Data", content, [figure for _, both in drawn for figure in both])


def _curves(family: Family, suffix: str, named: bool) -> tuple[Figure, Figure]:
    counts, n_popular = family.counts, int(family.popular.sum())
    n_niche, of = len(counts) - n_popular, f" of {family.name}" if named else ""
    tail = [
        popularity_line(f"popular: {n_popular:,} items", counts, 1, last=n_popular),
        popularity_line(f"niche: {n_niche:,} items", counts, 0, first=max(n_popular, 1)),
    ]
    cumulated = np.concatenate([[0.0], np.cumsum(np.sort(counts)[::-1]) / max(counts.sum(), 1)])
    ranks = np.unique(np.linspace(0, len(counts), POINTS).round().astype(int))
    shares = [Line("this log", (ranks / len(counts)).tolist(), cumulated[ranks].tolist(), 0), EQUAL]
    axes = ("item, most popular first", "interactions of the item")
    shared = ("share of items, most popular first", "share of interactions")
    return (
        Figure(
            f"long-tail{suffix}",
            f"The long tail{of}",
            f"Interactions per item, most popular first, on logarithmic axes. {n_popular:,} popular items "
            f"have 80% of the interactions, {n_niche:,} niche items the rest.",
            lambda theme: curves(tail, theme, *axes, across="log", upwards="log"),
        ),
        Figure(
            f"concentration{suffix}",
            f"How concentrated the log{of} is",
            "Cumulative share of interactions against share of items. The top fifth of the items has "
            f"{family.head_share:.0%}.",
            lambda theme: curves(shares, theme, *shared, across="percent", upwards="percent", top=1.0),
        ),
    )
