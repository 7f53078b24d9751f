"""The result of a comparison: plain numbers and the user's own ids, ready for JSON, and as a table.

LaTeX and Markdown have a row per entry and a column per metric: the mean over runs, ± their deviation where there are
several, the best of a column in bold, and a mark if the difference to the baseline is significant.
CSV has a row per entry and metric, with all numbers.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl
from polars import selectors

from dpaa._io import as_json, write_file
from dpaa._text import on_one_line
from dpaa.evaluation.metrics import Metric

SHOWN = {"better": "+", "worse": "−", "higher": "↑", "lower": "↓"}
"""Verdicts of significant differences, and their marks in tables."""
LATEX_MARKS = {"+": "$^{+}$", "−": "$^{-}$", "↑": r"$^{\uparrow}$", "↓": r"$^{\downarrow}$"}
NEAR_ZERO = 10
"""A baseline that the difference exceeds this many times is near 0."""


def relative_change(baseline: float, difference: float) -> float:
    """Compute the relative difference, difference / |baseline|.

    Parameters
    ----------
    baseline, difference : a metric of the baseline, and how much another entry has more

    Returns
    -------
    NaN if the baseline is 0 or near it: for 0.0001 → 0.0618 the difference of 0.0617 is meaningful, 61,700% is
    not.  Print the difference instead of a percentage in that case.
    """
    # Written so that NaN, which compares as false, ends here too.
    if not baseline or not abs(difference) <= NEAR_ZERO * abs(baseline):
        return float("nan")
    return difference / abs(baseline)


def harm_in_words(entry: str, baseline: str, margin: float, verdict: str, difference: str) -> str:
    """Describe the no-harm test on popular items.

    Parameters
    ----------
    entry, baseline : names
    margin : share of the baseline's recall on popular items that may be lost
    verdict : of the test against the margin: "shown", "harm" or "open"
    difference : verdict of the difference itself

    Returns
    -------
    one sentence
    """
    loss = f"{margin:.0%} of {baseline}'s recall there"
    if difference == "better":
        return f"no harm to popular items: {entry} is significantly better there than {baseline}"
    shown = "the loss on popular items is small" if difference == "worse" else "no harm to popular items"
    return {
        "shown": f"{shown}: {entry} loses less than {loss}",
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
    """A key of `SHOWN`, "not shown", or "not tested" where the metric is no mean over users; higher and lower where it
    has no better direction."""


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
    family: str
    """What Holm's correction covers, in words."""
    design: str
    """Where intervals and p-values come from, in words."""
    entries: list[Summary]
    deltas: list[Delta]
    no_harm: list[dict[str, Any]]
    """Non-inferiority of each `entry` on popular items: `metric`, `margin`, `baseline`, `value`, the `interval` of
    value − (1 − margin) · baseline (no harm if all of it is above 0), the one-sided `p` that the loss is the margin or
    more, and the `verdict` "shown", "harm" or "open"; also shown where the entry is better by more than chance."""
    overlap: list[dict[str, Any]]
    """How much of the lists is the same, on average over users and pairs of runs: `entry`, `other` (the baseline),
    `jaccard`, the number of `shared` items."""
    exposure: list[dict[str, Any]]
    """Of each `entry` the items that are `gaining` and `losing` most lists against the baseline."""
    notes: list[str]

    @property
    def compared(self) -> list[str]:
        """The metrics, in the order in which they were named."""
        return list(dict.fromkeys(delta.metric for delta in self.deltas))

    def to_frame(self) -> pl.DataFrame:
        """Make a table of all differences.

        Returns
        -------
        a row per entry and metric with every number of a `Delta`; null where there is none
        """
        rows = []
        for delta in self.deltas:
            row = asdict(delta)
            low, high = row.pop("interval") or (None, None)
            rows.append(row | {"interval_low": low, "interval_high": high})
        return pl.DataFrame(rows, infer_schema_length=None)

    def cells(
        self, escape: Callable[[str], str], bold: str, marks: Mapping[str, str]
    ) -> tuple[list[str], list[list[str]]]:
        """A header, and a row per entry: mean ± over runs, the best in bold, a mark for a difference that is shown.

        Parameters
        ----------
        escape : makes text harmless in the format
        bold : format of a bold number
        marks : mark of `SHOWN` → the same in the format

        Returns
        -------
        header and rows
        """
        verdicts = {(delta.entry, delta.metric): SHOWN.get(delta.verdict) for delta in self.deltas}
        rows = []
        for entry in self.entries:
            row = [escape(f"{entry.name} ({len(entry.seeds)} runs)" if entry.deviation else entry.name)]
            for metric in self.compared:
                value, mark = entry.metrics[metric], verdicts.get((entry.name, metric))
                mean = bold.format(_number(value)) if value == _best(self.entries, metric) else _number(value)
                spread = escape(f" ± {_number(entry.deviation[metric])}") if entry.deviation else ""
                row.append(f"{mean}{spread}{marks[mark] if mark else ''}")
            rows.append(row)
        return ["", *map(escape, self.compared)], rows

    def _caption(self) -> str:
        return (
            f"Test split of {self.dataset['name']}, lists of {self.k}. Bold: best. Marked: different from "
            f"{self.baseline}, p below 0.05 ({self.family}; {self.design}). ±: standard deviation over runs."
        )

    def markdown(self) -> str:
        """Write the table in GitHub's Markdown.

        Returns
        -------
        the table, and its caption below
        """
        header, rows = self.cells(_markdown_text, "**{}**", {mark: f" {mark}" for mark in SHOWN.values()})
        lines = [f"| {' | '.join(row)} |" for row in (header, ["---"] + ["---:"] * (len(header) - 1), *rows)]
        return "\n".join([*lines, "", _markdown_text(self._caption()), ""])

    def latex(self) -> str:
        """Write the table for a paper that uses the package booktabs.

        Returns
        -------
        a `table` environment
        """
        header, rows = self.cells(_latex_text, r"\textbf{{{}}}", LATEX_MARKS)
        body = " \\\\\n    ".join(" & ".join(row) for row in rows)
        return (
            "% needs \\usepackage{booktabs}\n\\begin{table}\n  \\centering\n"
            f"  \\caption{{{_latex_text(self._caption())}}}\n"
            f"  \\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}\n    \\toprule\n"
            f"    {' & '.join(header)} \\\\\n    \\midrule\n    {body} \\\\\n    \\bottomrule\n"
            "  \\end{tabular}\n\\end{table}\n"
        )

    def csv(self) -> str:
        """Write `to_frame` as CSV.

        Returns
        -------
        text; cells are empty where there is no number
        """
        return self.to_frame().with_columns(selectors.float().fill_nan(None)).write_csv()

    def as_json(self) -> dict[str, Any]:
        """Describe the comparison as `dpaa compare --json` prints it.

        Returns
        -------
        all fields as plain data
        """
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
    write_file(file, FORMATS[file.suffix.lower()](result), "free some space or choose another file with --out")


def _best(entries: Sequence[Summary], metric: str) -> float | None:
    """The best value of a metric; None where no direction is better, and where all are the same."""
    values = {entry.metrics[metric] for entry in entries if entry.metrics[metric] == entry.metrics[metric]}
    better = Metric.of(metric).better
    if better == "zero" or len(values) < 2:
        return None
    return max(values) if better == "high" else min(values)


def _number(value: float) -> str:
    return "-" if value != value else f"{value:,.1f}" if abs(value) >= 100 else f"{value:.4f}"


def _markdown_text(text: str) -> str:
    return re.sub(r"([\\`*_|<>\[\]])", r"\\\1", on_one_line(text))


def _latex_text(text: str) -> str:
    named = {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}", "±": r"$\pm$"}
    return re.sub(r"[&%$#_{}~^\\±]", lambda match: named.get(match[0], f"\\{match[0]}"), on_one_line(text))
