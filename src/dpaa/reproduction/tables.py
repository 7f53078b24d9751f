"""Results become tables: ours over seeds with the paper's number beside it; Markdown, LaTeX, CSV rows and HTML."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from markupsafe import Markup

from dpaa.report import parts
from dpaa.report.rendering import html, with_code
from dpaa.reproduction import paper
from dpaa.reproduction.results import RunResult

BEST, SECOND = "★", "☆"
LEGEND = (
    f"Bold: best of a column; italics or underlined: second best (on the screen {BEST} and {SECOND}); "
    "± deviation over seeds; below: the paper's number, difference"
)
MANY = 8
"""Columns from which on a page shows cells as narrow as can be."""
NARROW = "In brackets: the paper's; how far ours is from it stands in the cell's hint."
CSV_HEADER = ("table", "row", "column", "mean", "deviation", "seeds", "paper", "difference", "place")
_LATEX = {"_": r"\_", "%": r"\%", "&": r"\&", "#": r"\#", "±": r"$\pm$", "−": "$-$", "–": "--", "→": r"$\to$"}
_LATEX |= {"κ": r"$\kappa$", "γ": r"$\gamma$", "η": r"$\eta$", "δ": r"$\delta$", "×": r"$\times$"}


@dataclass(frozen=True)
class Cell:
    """One value: ours over the seeds, the paper's, and its place in its column (1 best, 2 second best, 0 neither)."""

    values: tuple[float, ...] = ()
    paper: float | None = None
    form: str = ".4f"
    """How a number is written; `%` is a relative change."""
    place: int = 0
    text: str | None = None
    """Words instead of numbers."""

    @property
    def mean(self) -> float:
        """Over the seeds; no number where there is none."""
        return float(np.mean(self.values)) if self.values else math.nan

    @property
    def deviation(self) -> float:
        """Over the seeds (n − 1)."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else math.nan

    def ours(self) -> str:
        """`0.1471 ± 0.0134`; the deviation is left out for one run, and nothing is a dash."""
        if self.text is not None:
            return self.text
        if math.isnan(self.mean):
            return "–"
        spread = "" if math.isnan(self.deviation) else f" ± {self._written(self.deviation)}"
        return self._written(self.mean) + spread

    def beside(self) -> str:
        """`0.1301, +0.0170`: the paper's, and how far ours is from it."""
        if self.paper is None:
            return ""
        theirs = self._written(self.paper)
        if self.text is not None or math.isnan(self.mean) or self.form == "%":
            return theirs
        return f"{theirs}, {parts.minus(format(self.mean - self.paper, '+' + self.form))}"

    def _written(self, value: float) -> str:
        return parts.minus(f"{value:+.1f} %") if self.form == "%" else parts.minus(format(value, self.form))


Cells = tuple[Cell, ...]
Lines = tuple[tuple[str, Cells], ...]
"""Labels and cells."""


@dataclass(frozen=True)
class Table:
    """A table of cells with what must be said about it."""

    name: str
    """Of its rows in the CSV file; unique in a chapter."""
    title: str
    corner: str
    columns: tuple[str, ...]
    rows: Lines
    footer: Lines = ()
    """Rows that are worked out from the others."""
    notes: tuple[str, ...] = ()
    on_screen: bool = True

    def lines(self) -> Lines:
        """Rows and footer."""
        return self.rows + self.footer

    # ------------------------------------------------------------------ formats

    def markdown(self) -> str:
        """Best bold, second best in italics; the paper's number on a line of its own in the cell."""
        body = [[label, *(_markdown(cell) for cell in cells)] for label, cells in self.lines()]
        notes = "".join(f"\n{note}\n" for note in self.notes)
        return f"### {self.title}\n\n{markdown([self.corner, *self.columns], body)}{notes}"

    def latex(self) -> str:
        """For booktabs; the paper's numbers in a smaller row below ours."""
        lines = [
            r"\begin{table}",
            r"\centering\small",
            rf"\caption{{{_latex(self.title)}}}",
            rf"\begin{{tabular}}{{l{'r' * len(self.columns)}}}",
            r"\toprule",
            " & ".join(_latex(name) for name in (self.corner, *self.columns)) + r" \\",
            r"\midrule",
        ]
        for place, (label, cells) in enumerate(self.lines()):
            if self.footer and place == len(self.rows):
                lines.append(r"\midrule")
            lines.append(" & ".join([_latex(label), *(_latex_cell(cell) for cell in cells)]) + r" \\")
            if any(cell.paper is not None for cell in cells):
                small = [rf"{{\scriptsize {_latex(cell.beside())}}}" if cell.beside() else "" for cell in cells]
                lines.append(" & ".join([r"\quad{\scriptsize paper}", *small]) + r" \\")
        lines += [r"\bottomrule", r"\end{tabular}"]
        lines += [rf"\par\smallskip\footnotesize {_latex(note)}" for note in self.notes]
        return "\n".join([*lines, r"\end{table}"]) + "\n"

    def csv_rows(self) -> list[list[object]]:
        """A row per cell, full precision."""
        found: list[list[object]] = []
        for label, cells in self.lines():
            for column, cell in zip(self.columns, cells, strict=True):
                mean: object = cell.text if cell.text is not None else _or_nothing(cell.mean)
                apart = cell.mean - cell.paper if cell.paper is not None else math.nan
                numbers = (_or_nothing(cell.deviation), len(cell.values), _or_nothing(cell.paper), _or_nothing(apart))
                found.append([self.name, label, column, mean, *numbers, cell.place or ""])
        return found

    def html(self) -> Markup:
        """For the page."""
        worded = {place for place in range(len(self.columns)) if any(c[place].text is not None for _, c in self.rows)}
        heads = [parts.Head(self.corner, numeric=False)]
        heads += [parts.Head(name, numeric=place not in worded) for place, name in enumerate(self.columns)]
        narrow = len(self.columns) >= MANY
        show = _html_narrow if narrow else _html
        rows = [
            [parts.Cell(html('<span style="white-space: normal">{}</span>', label)), *(show(cell) for cell in cells)]
            for label, cells in self.lines()
        ]
        notes = [html("<p>{}</p>", with_code(note)) for note in self.notes]
        if narrow:
            notes.insert(0, html("<p>{}</p>", NARROW))
        return Markup().join(
            [
                html('<div class="{}">', "narrow" if narrow else ""),
                parts.table(with_code(self.title), heads, rows, sortable=not self.footer),
                Markup("</div>"),
                *notes,
            ]
        )

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        rows = [dict(zip(CSV_HEADER[1:], row[1:], strict=True)) for row in self.csv_rows()]
        return {"table": self.name, "title": self.title, "cells": rows, "notes": list(self.notes)}


@dataclass(frozen=True)
class Chapter:
    """What one experiment has to show."""

    name: str
    title: str
    about: tuple[str, ...]
    """What was done, in sentences."""
    tables: tuple[Table, ...]
    figures: tuple[parts.Figure, ...] = ()
    missing: tuple[str, ...] = ()
    """What could not be shown, and what it would take."""
    conclusion: str = ""
    """What it comes to, in a sentence; stands first."""


# ---------------------------------------------------------------------- cells


@dataclass(frozen=True)
class Quantity:
    """What is read from results."""

    metric: str
    overlap: str = "drop"
    dial: bool = False
    """With the popularity dial, which is measured under `drop`."""

    def of(self, result: RunResult) -> float | None:
        """Its value; None where the training failed or there is none."""
        dialled = result.dial.metrics if result.dial else {}
        value = (dialled if self.dial else result.metrics.get(self.overlap, {})).get(self.metric)
        return value if value is not None and math.isfinite(value) else None


def cell_of(results: Iterable[RunResult], data: str, label: str, what: Quantity, printed: float | None = None) -> Cell:
    """A quantity over the seeds, and the paper's."""
    found = [what.of(one) for one in results if one.data == data and one.label == label]
    form = ".1f" if what.metric.startswith("arp") else ".4f"  # popularity is counted in pairs, all else is below 1
    return Cell(tuple(float(value) for value in found if value is not None), printed, form)


def severity_cells(
    results: Iterable[RunResult],
    labels: Mapping[str, str],
    severities: Sequence[float],
    what: Quantity,
    printed: Mapping[str, paper.Row],
) -> dict[str, list[Cell]]:
    """A quantity at each severity by name; `labels`: name → row of the results, `printed`: name → the paper's."""

    def cell(name: str, severity: float) -> Cell:
        theirs = paper.at_severity(printed.get(name), severity)
        return cell_of(results, f"s={severity:g}", labels[name], what, theirs)

    return {name: [cell(name, severity) for severity in severities] for name in labels}


def ranked(cells: Sequence[Cell]) -> Cells:
    """The same cells with best and second best (high is good) marked, as shown with four digits."""
    shown = [None if math.isnan(cell.mean) else round(cell.mean, 4) for cell in cells]
    levels = sorted({value for value in shown if value is not None}, reverse=True)[:2]
    if sum(value is not None for value in shown) < 2:
        return tuple(cells)
    places = [0 if value is None or value not in levels else levels.index(value) + 1 for value in shown]
    return tuple(replace(cell, place=place) for cell, place in zip(cells, places, strict=True))


def ranked_columns(rows: Sequence[tuple[str, Sequence[Cell]]], columns: Iterable[int]) -> Lines:
    """Rows with best and second best marked down these columns."""
    found = [(label, list(cells)) for label, cells in rows]
    for column in columns:
        for (_, cells), cell in zip(found, ranked([cells[column] for _, cells in rows]), strict=True):
            cells[column] = cell
    return tuple((label, tuple(cells)) for label, cells in found)


def improvements(
    rows: Sequence[tuple[str, Sequence[Cell]]], columns: Sequence[int], printed: Sequence[float | None]
) -> Lines:
    """How much DPAA's rows improve on the best of the paper's baselines, in percent, and on most-popular.

    `printed` is the best baseline of the paper in each column, where it has one.
    """
    by_label = dict(rows)

    def row(label: str, told: str, others: Sequence[str], theirs: Sequence[float | None]) -> tuple[str, Cells]:
        cells = [
            _improvement(by_label, label, others, column, best) if column in columns else Cell(text="")
            for column, best in enumerate(theirs)
        ]
        return f"{label}: {told}", tuple(cells)

    found = []
    if baselines := [label for label in by_label if label.split()[0] in paper.BASELINES]:
        ours = [label for label in by_label if paper.row_of(label) == "dpaa"]
        found += [row(label, "improvement over the best baseline", baselines, printed) for label in ours]
    if "most-popular" in by_label:
        ours = [label for label in by_label if label.split()[0] in ("dpaa", "dpaa-as-printed", "dpaa-auto")]
        none = [None] * len(printed)
        found += [row(label, "against most-popular", ["most-popular"], none) for label in ours]
    return tuple(found)


def _improvement(
    rows: dict[str, Sequence[Cell]], label: str, others: Sequence[str], column: int, printed: float | None
) -> Cell:
    own = rows[label][column]
    ours = [cell.mean for other in others if not math.isnan((cell := rows[other][column]).mean)]
    known = not math.isnan(own.mean) and bool(ours) and max(ours) > 0
    theirs = 100 * (own.paper / printed - 1) if own.paper is not None and printed else None
    return Cell((100 * (own.mean / max(ours) - 1),) if known else (), theirs, form="%")


def rank_agreement(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's ρ: the correlation of the ranks, ties sharing their mean rank; no number where a side has no order."""
    if len(one) < 2 or any(np.ptp(side) == 0 for side in (one, other)):
        return math.nan
    from scipy.stats import rankdata  # a second of every process that trains, and one table asks for it

    return float(np.corrcoef(rankdata(one), rankdata(other))[0, 1])


# ---------------------------------------------------------------------- formats


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def _markdown(cell: Cell) -> str:
    ours = cell.ours()
    ours = {1: f"**{ours}**", 2: f"_{ours}_"}.get(cell.place, ours)
    return f"{ours}<br>({cell.beside()})" if cell.beside() else ours


def _latex_cell(cell: Cell) -> str:
    ours = _latex(cell.ours())
    return {1: rf"\textbf{{{ours}}}", 2: rf"\underline{{{ours}}}"}.get(cell.place, ours)


def _latex(words: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in words.replace("`", ""))


def _html(cell: Cell) -> parts.Cell:
    ours = html("<u>{}</u>" if cell.place == 2 else "{}", cell.ours())
    theirs = html("<small><br>({})</small>", cell.beside()) if cell.beside() else ""
    by = None if cell.text is not None else cell.mean
    return parts.Cell(ours + theirs, by, best=cell.place == 1)


def _html_narrow(cell: Cell) -> parts.Cell:
    """One below the other: the mean, its deviation, the paper's; so that many columns are seen at once."""
    if cell.text is not None or math.isnan(cell.mean) or cell.form != ".4f":
        return _html(cell)
    mean = html("<u>{}</u>" if cell.place == 2 else "{}", _short(cell.mean))
    spread = Markup() if math.isnan(cell.deviation) else html("<small>± {}</small>", _short(cell.deviation))
    theirs = Markup() if cell.paper is None else html("<small>({})</small>", _short(cell.paper))
    return parts.Cell(mean + spread + theirs, cell.mean, best=cell.place == 1, note=cell.beside() or None)


def _short(value: float) -> str:
    """`.2030`: what is below 1 needs no zero in front."""
    return parts.minus(f"{value:.4f}").replace("0.", ".", 1) if abs(value) < 1 else parts.minus(f"{value:.4f}")


def _or_nothing(value: float | None) -> object:
    return "" if value is None or math.isnan(value) else value
