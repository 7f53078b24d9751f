"""In short: the verdict and what changes, before everything else; a sentence per run."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from dpaa._io import same_place
from dpaa.debiasing import times
from dpaa.evaluation.metrics import explain
from dpaa.report.inputs import Inputs, Run
from dpaa.report.parts import Section, change, minus, signed
from dpaa.report.records import FrontierFile
from dpaa.report.rendering import percent, render, sentence
from dpaa.report.sections.comparison import VERDICTS
from dpaa.report.sections.metrics import cautions, measured_alike

MOST = 8
"""Sentences; the table has the rest."""
SHOWN = {
    "ndcg@{}": ("accuracy (NDCG)", ".4f"),
    "recall@{}/niche": ("recall of niche items", ".4f"),
    "arp@{}": ("mean popularity of what is recommended", ",.0f"),
    "coverage@{}": ("items that anybody is shown", ".0%"),
}
ACCURACY, NICHE = "ndcg@{}", "recall@{}/niche"


@dataclass(frozen=True)
class Tile:
    """A number before and after."""

    what: str
    before: str
    after: str
    change: str
    better: bool | None
    """None where it stays, or nobody can say."""


@dataclass(frozen=True)
class Verdict:
    """What the page comes to."""

    words: str
    how: str = ""
    tiles: tuple[Tile, ...] = ()


def section(inputs: Inputs) -> Section:
    """The verdict with its numbers; then a sentence per run."""
    pairs, notes = [], []
    for _, runs in measured_alike(inputs):
        against = [(run, run.family.reference(run)) for run in runs if run.method not in ("most-popular", "lightgcn")]
        known = [(run, other) for run, other in against if other is not None and other in runs]
        pairs += known
        notes += cautions([run for run in runs if any(run in pair for pair in known)])
    tested = {(run.name, other.name): _tested(run, other, inputs) for run, other in pairs}
    content = render(
        "summary.html",
        verdicts=[_of_frontier(one) for one in inputs.frontiers] or _without_frontier(inputs, pairs),
        sentences=[(run.name, other.name, _changes(run, other, tested)) for run, other in pairs[:MOST]],
        untested=any(not found for found in tested.values()),
        notes=notes,
        inputs=inputs,
    )
    return Section("summary", "In short", "In short", content)


# ---------------------------------------------------------------------- the verdict


def _of_frontier(content: FrontierFile) -> Verdict:
    base, chosen = content.base, content.chosen
    words = content.headline or next(iter(content.sentences), "")
    users = "validation users" if content.users is None else f"{content.users:,} validation users"
    if chosen.name == base.name:
        return Verdict(f"{sentence(words)}.", "; ".join(content.sentences[:1]))
    tiles = [_accuracy(content)] if isfinite(base.accuracy) else []
    goals = {goal.metric: goal for goal in content.goals}
    named = {pattern.format(content.k or 20): words for pattern, words in SHOWN.items() if pattern != ACCURACY}
    for metric in dict.fromkeys((*goals, *named)):
        before, after = base.metrics.get(metric), chosen.metrics.get(metric)
        if before is None or after is None:
            continue
        what, form = named.get(metric, (metric, ".4g"))
        tiles.append(_tile(what, before, after, form, goals[metric].better if metric in goals else direction(metric)))
    return Verdict(f"{sentence(words)}.", f"{chosen.name} in place of {base.name}, measured on {users}.", tuple(tiles))


def _accuracy(content: FrontierFile) -> Tile:
    """As the verdict has it: by users who had no part in the choice, where some were asked."""
    confirmed = content.confirmation.change.estimate
    if not isfinite(confirmed):
        return _tile("accuracy", content.base.accuracy, content.chosen.accuracy, ".4f", "high")
    return Tile("accuracy, judged by users who had no part in the choice", "", "", signed(confirmed), confirmed > 0)


def _without_frontier(inputs: Inputs, pairs: list[tuple[Run, Run]]) -> list[Verdict]:
    """Of the last run that can be set against another; without one, of the log."""
    if pairs:
        run, other = pairs[-1]
        k = run.protocol.largest_k
        tiles = []
        for pattern, (what, form) in SHOWN.items():
            metric = pattern.format(k)
            before, after = other.metrics.get(metric), run.metrics.get(metric)
            if before is not None and after is not None:
                tiles.append(_tile(what, before, after, form, direction(metric)))
        told = [
            f"{words} {_factor(other.metrics[metric], run.metrics[metric])}"
            for pattern, words in ((NICHE, "niche items found"), (ACCURACY, "accuracy"))
            if (metric := pattern.format(k)) in other.metrics and metric in run.metrics
        ]
        words = f"{run.name} in place of {other.name}: {', '.join(told)}." if told else ""
        return [Verdict(words, "", tuple(tiles))]
    if inputs.families:
        share = percent(inputs.families[0].head_share, 0)
        return [Verdict(f"The top fifth of the items has {share} of the interactions of {inputs.families[0].name}.")]
    return []


def direction(metric: str) -> str | None:
    """Which is better: high, low or zero; None where nobody can say."""
    known = explain(metric)
    return None if known is None else known.better


def _factor(before: float, after: float) -> str:
    return times(before, after) if isfinite(before) and isfinite(after) else "–"


def _tile(what: str, before: float, after: float, form: str, better: str | None) -> Tile:
    gain = {"high": after - before, "low": before - after, "zero": abs(before) - abs(after)}.get(better or "", 0.0)
    moved = times(before, after) if before > 0 and better == "high" else change(before, after - before)
    return Tile(what, _shown(before, form), _shown(after, form), moved, None if abs(gain) < 1e-12 else gain > 0)


def _shown(value: float, form: str) -> str:
    return minus(f"{value:{form}}").replace("%", " %")


# ---------------------------------------------------------------------- a sentence per run


def _tested(run: Run, reference: Run, inputs: Inputs) -> dict[str, str]:
    """Verdicts of `dpaa compare` on this pair, by metric; empty where nobody compared them."""
    for _, comparison in inputs.comparisons:
        names = {
            entry.name: one
            for entry in comparison.entries
            for one in (run, reference)
            if any(same_place(source, one.folder.path) for source in entry.sources)
        }
        if names.get(comparison.baseline) is reference and run in names.values():
            return {delta.metric: delta.verdict for delta in comparison.deltas if names.get(delta.entry) is run}
    return {}


def _changes(run: Run, reference: Run, tested: dict[tuple[str, str], dict[str, str]]) -> str:
    told = []
    for pattern, (name, form) in SHOWN.items():
        metric = pattern.format(run.protocol.largest_k)
        before, after = reference.metrics.get(metric), run.metrics.get(metric)
        if before is not None and after is not None:
            verdict = tested[run.name, reference.name].get(metric, "not tested")
            chance = "" if verdict == "not tested" else f"; {VERDICTS[verdict]}"
            relative = "" if form.endswith("%") else f" ({change(before, after - before)}{chance})"
            told.append(f"{name} {_shown(before, form)} → {_shown(after, form)}{relative}")
    return "; ".join(told)
