"""A comparison (`dpaa compare --json`): what differs from the baseline, and what is more than chance."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, nan

from markupsafe import Markup

from dpaa._io import same_place
from dpaa.comparison import Comparison, Exposure, Place, harm_in_words, relative_change
from dpaa.evaluation.metrics import explain
from dpaa.report.charts import Interval, intervals
from dpaa.report.inputs import Run
from dpaa.report.lenient import lenient
from dpaa.report.parts import (
    Cell,
    Figure,
    Head,
    Section,
    absolute,
    minus,
    moved_items,
    number,
    signed,
    table,
)
from dpaa.report.records import Protocol
from dpaa.report.rendering import render, shown_item

SHOWN_PLACES = 10
LONGEST_TITLE = 60
VERDICTS = {
    "better": "better, more than chance",
    "worse": "worse, more than chance",
    "higher": "higher, more than chance",
    "lower": "lower, more than chance",
    "not shown": "could be chance",
    "not tested": "not tested: no average over users",
}


def section(name: str, comparison: Comparison, suffix: str = "", runs: Sequence[Run] = ()) -> Section:
    """Differences with intervals, the no-harm line, and what changes for items and users.

    Where all entries are among `runs`, which have chapters of their own for items and users, these are left out.
    """
    figure, near_zero = _figure(comparison, suffix)
    shown_above = _all_among(comparison, runs)
    content = render(
        "comparison.html",
        comparison=comparison,
        protocol=lenient(Protocol, comparison.protocol),
        verdicts={(delta.entry, delta.metric): delta.verdict for delta in comparison.deltas},
        harm_in_words=harm_in_words,
        figure=figure,
        near_zero=", ".join(near_zero),
        deltas=_deltas(comparison),
        moved=[] if shown_above else [(one.entry, _moved(comparison, one)) for one in comparison.exposure],
        examples=[] if shown_above else _examples(comparison),
    )
    against = ", ".join(entry.name for entry in comparison.entries if entry.name != comparison.baseline)
    title = f"{against} against {comparison.baseline}" if 0 < len(against) <= LONGEST_TITLE else name
    title = f"Significance: {title}"
    return Section(f"comparison{suffix}", title, "Comparison", content, [figure] if figure else [])


def _all_among(comparison: Comparison, runs: Sequence[Run]) -> bool:
    sources = [source for entry in comparison.entries for source in entry.sources]
    return bool(sources) and all(any(same_place(source, run.folder.path) for run in runs) for source in sources)


def _figure(comparison: Comparison, suffix: str) -> tuple[Figure | None, list[str]]:
    """Relative changes; and what is not drawn, since its baseline is near 0."""
    baseline = comparison.baseline
    entries = list(dict.fromkeys(delta.entry for delta in comparison.deltas))
    rows, near_zero = [], []
    for delta in comparison.deltas:
        relative = relative_change(delta.baseline, delta.delta)
        if delta.interval is not None and isfinite(relative):
            low, high = (edge / abs(delta.baseline) for edge in delta.interval)
            tip = f"{delta.entry}, {delta.metric}: {signed(relative)} ({signed(low)} to {signed(high)})"
            rows.append(Interval(delta.metric, delta.entry, entries.index(delta.entry) + 1, relative, low, high, tip))
        elif delta.interval is not None and isfinite(delta.baseline + delta.delta):
            near_zero.append(f"{delta.metric} of {delta.entry} ({absolute(delta.delta)})")
    if not rows:
        return None, near_zero
    told = "; ".join(row.tip for row in rows[:12])
    figure = Figure(
        f"differences{suffix}",
        f"Change against {baseline}",
        f"Relative change of each metric with its interval. {told}.",
        lambda theme: intervals(rows, theme, f"change relative to {baseline}"),
    )
    return figure, near_zero


def _deltas(comparison: Comparison) -> Markup:
    rows = []
    for delta in comparison.deltas:
        words = explain(delta.metric)
        relative = relative_change(delta.baseline, delta.delta)
        low, high = delta.interval or (nan, nan)
        p = nan if delta.p_holm is None else delta.p_holm
        rows.append(
            [
                delta.entry,
                Cell(delta.metric, note=words.words if words else None),
                number(delta.baseline),
                number(delta.value),
                number(delta.delta),
                Cell(signed(relative) if isfinite(relative) else "–", relative),
                Cell(minus(f"{low:.4f} to {high:.4f}") if isfinite(low) else "–", low),
                Cell("–" if not isfinite(p) else "< 0.001" if p < 0.001 else f"{p:.3f}", p),
                Cell(VERDICTS.get(delta.verdict, delta.verdict), delta.verdict),
            ]
        )
    heads = [
        "entry",
        "metric",
        Head(comparison.baseline, "the baseline"),
        "value",
        "difference",
        Head("relative", "difference / baseline; – where the baseline is 0 or near it"),
        "interval",
        Head("p (Holm)", "corrected p-value: how surprising the difference would be if there were none"),
        "verdict",
    ]
    return table(f"Differences from {comparison.baseline}", heads, rows) if rows else Markup()


def _moved(comparison: Comparison, exposure: Exposure) -> list[Markup]:
    told = f"lists that hold the item; before = {comparison.baseline}, after = {exposure.entry}"
    return [
        moved_items(
            f"{side}: {told}",
            [
                (shown_item(item.item_id, item.title), item.training_count, item.group, item.baseline, item.value)
                for item in items
            ],
        )
        for side, items in (("Winners", exposure.gaining), ("Losers", exposure.losing))
    ]


def _examples(comparison: Comparison) -> list[tuple[object, str, list[tuple[str, list[Place], bool]]]]:
    """User, why, and both lists."""
    found = []
    for one in comparison.examples:
        change = f"{one.metric} {one.baseline:.3f} → {one.value:.3f}; " if isfinite(one.value - one.baseline) else ""
        why = (
            f"{change}{one.history} items in the history, {len(one.relevant)} liked in the test, {one.shared} items in "
            "both lists"
        )
        lists = [
            (comparison.baseline, one.baseline_list[:SHOWN_PLACES], True),
            (one.entry, one.entry_list[:SHOWN_PLACES], True),
        ]
        found.append((one.user_id, why, lists))
    return found
