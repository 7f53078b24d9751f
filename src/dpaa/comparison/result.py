"""What a comparison of several recommenders finds: plain numbers and the user's own ids, ready for JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from typing import Any

import polars as pl
from markupsafe import Markup

from dpaa._html import html_table, html_text
from dpaa.evaluation.metrics import METRICS

VERDICTS = ("better", "worse", "higher", "lower", "not shown", "not tested")
"""Of a delta: higher and lower where a metric has no better direction; not tested where it is no mean over users."""
SHOWN = {"better": "+", "worse": "−", "higher": "↑", "lower": "↓"}
"""Verdicts that say a difference is more than chance, and their marks in tables."""
ROW_COLUMNS = (
    *("entry", "metric", "value", "deviation", "runs", "baseline", "baseline_value", "difference", "relative"),
    *("interval_low", "interval_high", "p", "p_corrected", "users", "verdict"),
)
NEAR_ZERO = 10
"""A baseline that the difference exceeds this many times is near 0."""


def relative_change(baseline: float, difference: float) -> float:
    """The difference in units of the baseline, difference / |baseline|, with the difference's sign.

    NaN where there is no baseline to speak of, 0 or near it: 0.0001 → 0.0618 is a difference of 0.0617, which tells
    something, and 61,700 %, which does not.  Whoever would print a percentage prints the difference there.
    """
    if not baseline or not abs(difference) <= NEAR_ZERO * abs(baseline):
        return float("nan")
    return difference / abs(baseline)


def harm_in_words(entry: str, baseline: str, margin: float, verdict: str, difference: str) -> str:
    """The line on popular items: that of the margin, and that of the difference itself (one of `VERDICTS`), at once."""
    loss = f"{margin:.0%} of {baseline}'s recall there"
    if difference == "better":
        return f"no harm to popular items: {entry} is better there than {baseline}, by more than chance explains"
    if verdict == "shown" and difference == "worse":
        return f"the loss on popular items is small: {entry} loses more than chance explains, but less than {loss}"
    if verdict == "harm" and difference == "not shown":
        return (
            f"harm to popular items, if this is the only question: {entry} loses more than {loss}; "
            "corrected for all tests, what is seen may be luck"
        )
    return {
        "shown": f"no harm to popular items: {entry} loses less than {loss}, if anything",
        "harm": f"harm to popular items: {entry} loses more than {loss}",
        "open": f"no harm to popular items is not shown: {entry} may lose {loss} or more",
    }.get(verdict, f"harm to popular items: {verdict}")


@dataclass(frozen=True)
class Summary:
    """The metrics of an entry, the mean over its runs."""

    name: str
    kind: str
    sources: tuple[str, ...]
    seeds: tuple[int, ...]
    metrics: dict[str, float]
    deviation: dict[str, float]
    """Standard deviation over the runs; empty with one run."""
    exposure_by_decile: list[float]
    """As `Evaluation.exposure`, at k."""

    @property
    def runs(self) -> int:
        """How many there are; a file counts as one."""
        return max(len(self.seeds), 1)


@dataclass(frozen=True)
class Delta:
    """One metric of one entry against the baseline."""

    entry: str
    metric: str
    baseline: float
    """Where it is tested, over the users with a value on both sides, as `value`."""
    value: float
    delta: float
    relative: float
    """As `relative_change`; NaN where the baseline is 0 or near it."""
    interval: tuple[float, float] | None
    """None for metrics of all lists together (coverage, gini …), which are no means over users; NaN with few users."""
    p: float | None
    p_holm: float | None
    """Corrected for all tests of the comparison."""
    users: int | None
    """Users with a value on both sides."""
    verdict: str
    """One of `VERDICTS`."""


@dataclass(frozen=True)
class NoHarm:
    """Non-inferiority: whether the entry has lost less than `margin` of the baseline's metric."""

    entry: str
    metric: str
    margin: float
    baseline: float
    value: float
    allowed: float
    """(1 − margin) · baseline."""
    interval: tuple[float, float]
    """Of value − (1 − margin) · baseline: no harm if all of it is above 0."""
    p: float
    """One-sided, that the loss is the margin or more."""
    verdict: str
    """"shown", "harm" or "open"; also shown where the entry's metric is better by more than chance."""


@dataclass(frozen=True)
class Overlap:
    """How much of the lists is the same, on average over users (and pairs of runs)."""

    entry: str
    other: str
    jaccard: float
    shared: float
    """Mean number of items in both lists."""
    unchanged: float
    """Share of users with the same items in both."""


@dataclass(frozen=True)
class Moved:
    """An item whose exposure changes: in how many lists it is (mean over runs)."""

    item_id: Any
    group: str
    training_count: int
    baseline: float
    value: float
    change: float
    title: str | None = None
    """What people call it, where somebody said."""


@dataclass(frozen=True)
class Exposure:
    """The items that gain and lose most, best and worst first."""

    entry: str
    gaining: list[Moved]
    losing: list[Moved]
    items_gaining: int
    items_losing: int


@dataclass(frozen=True)
class Place:
    """One place of a list."""

    item_id: Any
    """None for an item the dataset does not know, or where the list has ended."""
    hit: bool
    group: str | None
    title: str | None = None


@dataclass(frozen=True)
class Example:
    """A user for whom much changes; the lists are those of the first runs."""

    entry: str
    user_id: Any
    relevant: list[Any]
    """The items the user took in the test split."""
    history: int
    """Number of training items."""
    shared: int
    """Items in both lists."""
    metric: str
    baseline: float
    value: float
    baseline_list: list[Place]
    entry_list: list[Place]


@dataclass(frozen=True)
class Comparison:
    """All of it."""

    dataset: dict[str, Any]
    protocol: dict[str, Any]
    protocol_in_words: str
    baseline: str
    k: int
    resamples: int
    seed: int
    confidence: float
    tests: int
    """How many tests were made."""
    family: str
    """What Holm's correction covers, in words."""
    design: str
    """Where intervals and p-values come from, in words."""
    entries: list[Summary]
    deltas: list[Delta]
    no_harm: list[NoHarm]
    overlap: list[Overlap]
    exposure: list[Exposure]
    examples: list[Example]
    notes: list[str] = field(default_factory=list)

    @property
    def compared(self) -> list[str]:
        """The metrics, in the order they were asked for."""
        return list(dict.fromkeys(delta.metric for delta in self.deltas))

    def rows(self) -> list[dict[str, Any]]:
        """A row per entry and metric with every number there is, `ROW_COLUMNS`; None where there is none."""
        deltas = {(delta.entry, delta.metric): delta for delta in self.deltas}
        made = []
        for entry, metric in product(self.entries, self.compared):
            delta = deltas.get((entry.name, metric))
            low, high = (delta.interval if delta else None) or (None, None)
            against: tuple[Any, ...] = (None,) * 10
            if delta is not None:
                against = (self.baseline, delta.baseline, delta.delta, delta.relative, low, high)
                against += (delta.p, delta.p_holm, delta.users, delta.verdict)
            own = (entry.name, metric, entry.metrics[metric], entry.deviation.get(metric), entry.runs)
            made.append(dict(zip(ROW_COLUMNS, own + against, strict=True)))
        return made

    def to_frame(self) -> pl.DataFrame:
        """`rows` as a frame."""
        return pl.DataFrame(self.rows(), infer_schema_length=None)

    def cells(
        self, escape: Callable[[str], str], bold: str, marks: Mapping[str, str], spread: str = " ± "
    ) -> tuple[list[str], list[list[str]]]:
        """A header, and a row per entry: mean ± over runs, the best in bold, a mark for a difference that is shown."""
        best = {metric: _best(self.entries, metric) for metric in self.compared}
        verdicts = {(delta.entry, delta.metric): delta.verdict for delta in self.deltas}
        made = []
        for entry in self.entries:
            row = [escape(f"{entry.name} ({entry.runs} runs)" if entry.deviation else entry.name)]
            for metric in self.compared:
                value = entry.metrics[metric]
                mean = bold.format(_number(value)) if value == best[metric] else _number(value)
                deviation = f"{spread}{_number(entry.deviation[metric])}" if entry.deviation else ""
                mark = SHOWN.get(verdicts.get((entry.name, metric), ""), "")
                row.append(f"{mean}{deviation}{marks.get(mark, '')}")
            made.append(row)
        return ["", *map(escape, self.compared)], made

    def _repr_html_(self) -> str:
        marks = {mark: f" {mark}" for mark in SHOWN.values()}
        header, rows = self.cells(html_text, "<b>{}</b>", marks)
        words = ", ".join(f"{mark} {word}" for word, mark in SHOWN.items())
        legend = f"bold: best; {words} than {self.baseline}, corrected p below .05 ({self.family}; {self.design})"
        title = f"Comparison: test split of {self.dataset['name']}, lists of {self.k}"
        made = [[Markup(cell) for cell in row] for row in rows]
        return html_table(title, header, made, [legend, self.protocol_in_words, *self.notes])

    def as_json(self) -> dict[str, Any]:
        """As `dpaa compare --json` prints it."""
        return {"kind": "comparison", **asdict(self)}


def _best(entries: Sequence[Summary], metric: str) -> float | None:
    """None where no direction is better, and where all are the same."""
    values = [entry.metrics[metric] for entry in entries if entry.metrics[metric] == entry.metrics[metric]]
    better = METRICS[metric.partition("@")[0]].better
    if better == "zero" or len(set(values)) < 2:
        return None
    return max(values) if better == "high" else min(values)


def _number(value: float) -> str:
    return "-" if value != value else f"{value:,.1f}" if abs(value) >= 100 else f"{value:.4f}"
