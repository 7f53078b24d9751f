"""The result of a comparison: plain numbers and the user's own ids, ready for JSON, and as a table.

LaTeX, Markdown and HTML have a row per entry and a column per metric: the mean over runs, ± their deviation where there
are several, the best of a column in bold, and a mark where the difference to the baseline is more than chance explains.
CSV has a row per entry and metric, with every number behind that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
from markupsafe import Markup
from polars import selectors

from dpaa._html import html_table, html_text
from dpaa._io import as_json, write_file
from dpaa._text import on_one_line
from dpaa.evaluation.metrics import METRICS

VERDICTS = ("better", "worse", "higher", "lower", "not shown", "not tested")
"""Of a delta: higher and lower where a metric has no better direction; not tested where it is no mean over users."""
SHOWN = {"better": "+", "worse": "−", "higher": "↑", "lower": "↓"}
"""Verdicts that say a difference is more than chance, and their marks in tables."""
SPACED = {mark: f" {mark}" for mark in SHOWN.values()}
LATEX_MARKS = {"+": "$^{+}$", "−": "$^{-}$", "↑": r"$^{\uparrow}$", "↓": r"$^{\downarrow}$"}
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
    """Its name for people, where it is known."""


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
    """The result of a comparison."""

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
        """The metrics, in the order in which they were named."""
        return list(dict.fromkeys(delta.metric for delta in self.deltas))

    def to_frame(self) -> pl.DataFrame:
        """A row per entry and metric with every number there is; null where there is none."""
        deltas = {(delta.entry, delta.metric): delta for delta in self.deltas}
        rows = []
        for entry, metric in product(self.entries, self.compared):
            delta = deltas.get((entry.name, metric))
            low, high = (delta.interval if delta else None) or (None, None)
            rows.append(
                {
                    "entry": entry.name,
                    "metric": metric,
                    "value": entry.metrics[metric],
                    "deviation": entry.deviation.get(metric),
                    "runs": entry.runs,
                    "baseline": self.baseline if delta else None,
                    "baseline_value": delta and delta.baseline,
                    "difference": delta and delta.delta,
                    "relative": delta and delta.relative,
                    "interval_low": low,
                    "interval_high": high,
                    "p": delta and delta.p,
                    "p_corrected": delta and delta.p_holm,
                    "users": delta and delta.users,
                    "verdict": delta and delta.verdict,
                }
            )
        return pl.DataFrame(rows, infer_schema_length=None)

    def cells(
        self, escape: Callable[[str], str], bold: str, marks: Mapping[str, str], spread: str = " ± "
    ) -> tuple[list[str], list[list[str]]]:
        """A header, and a row per entry: mean ± over runs, the best in bold, a mark for a difference that is shown."""
        best = {metric: _best(self.entries, metric) for metric in self.compared}
        verdicts = {(delta.entry, delta.metric): delta.verdict for delta in self.deltas}
        rows = []
        for entry in self.entries:
            row = [escape(f"{entry.name} ({entry.runs} runs)" if entry.deviation else entry.name)]
            for metric in self.compared:
                value = entry.metrics[metric]
                mean = bold.format(_number(value)) if value == best[metric] else _number(value)
                deviation = f"{spread}{_number(entry.deviation[metric])}" if entry.deviation else ""
                mark = SHOWN.get(verdicts.get((entry.name, metric), ""), "")
                row.append(f"{mean}{deviation}{marks.get(mark, '')}")
            rows.append(row)
        return ["", *map(escape, self.compared)], rows

    def _legend(self, escape: Callable[[str], str], marks: Mapping[str, str]) -> str:
        words = ", ".join(f"{marks.get(mark, mark)} {word}" for word, mark in SHOWN.items())
        several = " ±: standard deviation over runs." if any(entry.deviation for entry in self.entries) else ""
        tested = f"{self.baseline}, corrected p below .05 ({self.family}; {self.design}).{several}"
        return f"Bold: best. {words} than {escape(tested)}"

    def _title(self) -> str:
        return f"Test split of {self.dataset['name']}, lists of {self.k}."

    def _repr_html_(self) -> str:
        header, rows = self.cells(html_text, "<b>{}</b>", SPACED)
        marked = [[Markup(cell) for cell in row] for row in rows]
        notes = [self._legend(str, {}), self.protocol_in_words, *self.notes]
        return html_table(f"Comparison: {self._title()}", header, marked, notes)

    def markdown(self) -> str:
        """A table of GitHub's Markdown, what it was measured on above it and its legend below."""
        header, rows = self.cells(_markdown_text, "**{}**", SPACED)
        lines = [f"| {' | '.join(row)} |" for row in (header, ["---"] + ["---:"] * (len(header) - 1), *rows)]
        return "\n".join([_markdown_text(self._title()), "", *lines, "", self._legend(_markdown_text, {}), ""])

    def latex(self) -> str:
        """A `table` for a paper that uses the package booktabs."""
        header, rows = self.cells(_latex_text, r"\textbf{{{}}}", LATEX_MARKS, r" $\pm$ ")
        caption = f"{_latex_text(self._title())} {self._legend(_latex_text, LATEX_MARKS)}"
        lines = [
            r"% needs \usepackage{booktabs}",
            r"\begin{table}",
            r"  \centering",
            rf"  \caption{{{caption}}}",
            rf"  \begin{{tabular}}{{l{'r' * (len(header) - 1)}}}",
            r"    \toprule",
            f"    {' & '.join(header)} \\\\",
            r"    \midrule",
            *(f"    {' & '.join(row)} \\\\" for row in rows),
            r"    \bottomrule",
            r"  \end{tabular}",
            r"\end{table}",
        ]
        return "\n".join(lines) + "\n"

    def csv(self) -> str:
        """`to_frame` as text; empty where there is no number."""
        return self.to_frame().with_columns(selectors.float().fill_nan(None)).write_csv()

    def as_json(self) -> dict[str, Any]:
        """As `dpaa compare --json` prints it."""
        return {"kind": "comparison", **asdict(self)}


FORMATS: dict[str, Callable[[Comparison], str]] = {
    ".json": lambda result: as_json(result.as_json()),
    ".md": Comparison.markdown,
    ".tex": Comparison.latex,
    ".csv": Comparison.csv,
}
"""By the ending of the file."""


def write_table(result: Comparison, file: Path) -> None:
    """Write a comparison in the format of the file's ending; the file appears whole or not at all.

    Parameters
    ----------
    result : the comparison
    file : a path with one of the endings of `FORMATS`
    """
    write_file(file, FORMATS[file.suffix.lower()](result), "make room or choose another place with --out")


def _best(entries: Sequence[Summary], metric: str) -> float | None:
    """None where no direction is better, and where all are the same."""
    values = [entry.metrics[metric] for entry in entries if entry.metrics[metric] == entry.metrics[metric]]
    better = METRICS[metric.partition("@")[0]].better
    if better == "zero" or len(set(values)) < 2:
        return None
    return max(values) if better == "high" else min(values)


def _number(value: float) -> str:
    return "-" if value != value else f"{value:,.1f}" if abs(value) >= 100 else f"{value:.4f}"


def _markdown_text(text: str) -> str:
    return re.sub(r"([\\`*_|<>\[\]])", r"\\\1", on_one_line(text))


def _latex_text(text: str) -> str:
    named = {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}
    escaped = re.sub(r"[&%$#_{}~^\\]", lambda found: named.get(found[0], f"\\{found[0]}"), on_one_line(text))
    return escaped.replace("±", r"$\pm$")
