"""Tables of results over seeds, next to the paper's numbers: for the terminal, Markdown and CSV."""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from dpaa._io import write_file
from dpaa.report import Chart, Line, line, save_figure
from dpaa.reproduction import _paper as paper
from dpaa.reproduction._results import RunResult

CSV_HEADER = ("table", "row", "column", "mean", "deviation", "seeds", "paper", "difference", "place")
ACCURACY = ("recall", "ndcg", "hit")


@dataclass(frozen=True)
class Cell:
    """One value: ours over the seeds, and the paper's.

    Parameters
    ----------
    values : one for each seed
    paper : the paper's number
    form : format of a number
    rank : 1 for the best of its column, 2 for the second best, 0 for the others
    text : words instead of numbers
    """

    values: tuple[float, ...] = ()
    paper: float | None = None
    form: str = ".4f"
    rank: int = 0
    text: str | None = None

    @property
    def mean(self) -> float:
        """Mean over the seeds; NaN without any."""
        return float(np.mean(self.values)) if self.values else math.nan

    @property
    def deviation(self) -> float:
        """Standard deviation over the seeds (n − 1)."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else math.nan

    def shown(self) -> str:
        """`★ 0.1471 ± 0.0134`, and below it the paper's number and the difference: `(0.1301, +0.0170)`."""
        if self.text is not None:
            return self.text
        ours = {1: "★ ", 2: "☆ "}.get(self.rank, "") + (format(self.mean, self.form) if self.values else "–")
        ours += f" ± {self.deviation:{self.form}}" if len(self.values) > 1 else ""
        theirs = [] if self.paper is None else [format(self.paper, self.form)]
        theirs += [f"{self.mean - self.paper:+{self.form}}"] if self.paper is not None and self.values else []
        return (ours + (f"\n({', '.join(theirs)})" if theirs else "")).replace("-", "−")


Rows = list[tuple[str, list[Cell]]]
"""Labels and cells."""


@dataclass(frozen=True)
class Table:
    """A table of cells.

    Parameters
    ----------
    name : identifies its rows in the CSV file; unique in a chapter
    title, corner, columns : headings; the corner is that of the labels
    rows : labels and cells
    on_screen : whether it is printed on the terminal, too
    """

    name: str
    title: str
    corner: str
    columns: Sequence[str]
    rows: Rows
    on_screen: bool = True

    def grid(self) -> list[list[str]]:
        """Format the cells.

        Returns
        -------
        a list per row, which starts with its label
        """
        return [[label, *(cell.shown() for cell in cells)] for label, cells in self.rows]

    def records(self) -> list[dict[str, Any]]:
        """List the cells in full precision.

        Returns
        -------
        a record per cell with the fields of `CSV_HEADER`
        """
        records = []
        for label, cells in self.rows:
            for column, cell in zip(self.columns, cells, strict=True):
                difference = math.nan if cell.paper is None else cell.mean - cell.paper
                mean = cell.mean if cell.text is None else cell.text
                values = (mean, cell.deviation, len(cell.values), cell.paper, difference, cell.rank or None)
                record = zip(CSV_HEADER, (self.name, label, column, *values), strict=True)
                records.append({name: "" if value is None or value != value else value for name, value in record})
        return records

    def markdown(self) -> str:
        """Write the table in Markdown.

        Returns
        -------
        heading and table
        """
        lines = [[self.corner, *self.columns], ["---"] * (len(self.columns) + 1), *self.grid()]
        escaped = [[cell.replace("|", "\\|").replace("\n", "<br>") for cell in cells] for cells in lines]
        return "\n".join([f"### {self.title}\n", *(f"| {' | '.join(cells)} |" for cells in escaped), ""])


@dataclass(frozen=True)
class Chapter:
    """What one experiment shows.

    Parameters
    ----------
    name, title : of its files, and its heading
    about : what was done, in sentences
    tables : in their order
    figures : name → severities and rows whose recall@20 is drawn
    missing : what could not be shown, and what it would take
    """

    name: str
    title: str
    about: Sequence[str]
    tables: Sequence[Table]
    figures: Mapping[str, tuple[Sequence[float], Rows]] = field(default_factory=dict)
    missing: Sequence[str] = ()

    def markdown(self) -> str:
        """Write the chapter in Markdown.

        Returns
        -------
        heading, text, tables and what is missing
        """
        tables, missing = [table.markdown() for table in self.tables], [f"- {line}" for line in self.missing]
        return "\n".join([f"## {self.title}\n", *(f"{line}\n" for line in self.about), *tables, *missing, ""])


# ---------------------------------------------------------------------- from results to cells


@dataclass(frozen=True)
class Column:
    """What a column of a table measures; `printed` are the paper's values by its rows."""

    title: str
    data: str
    metric: str
    overlap: str = "drop"
    printed: Mapping[str, float] = field(default_factory=dict)


def measured(results: Sequence[RunResult], labels: Mapping[str, str], columns: Sequence[Column]) -> Rows:
    """Cells of all rows, the best and second best of each column of accuracies marked.

    Parameters
    ----------
    results : of trainings
    labels : row → label of its results
    columns : what they measure

    Returns
    -------
    rows
    """
    by_column = []
    for column in columns:
        values: dict[str, list[float]] = {label: [] for label in labels.values()}
        for result in results:
            value = result.value(column.metric, column.overlap)
            if result.data == column.data and result.label in values and value is not None:
                values[result.label].append(value)
        form = ".1f" if column.metric.startswith("arp") else ".4f"  # ARP counts pairs, all others are below 1
        cells = [Cell(tuple(values[labels[row]]), column.printed.get(paper.row_of(row)), form) for row in labels]
        by_column.append(ranked(cells) if column.metric.startswith(ACCURACY) else cells)
    return [(row, list(cells)) for row, cells in zip(labels, zip(*by_column, strict=True), strict=True)]


def ranked(cells: Sequence[Cell]) -> Sequence[Cell]:
    """Mark the best and second best cells (high is good), compared as shown with four digits."""
    # As shown: of two numbers that look alike in the table, none is the better one.
    shown = [round(cell.mean, 4) if cell.values else None for cell in cells]
    levels = sorted({value for value in shown if value is not None}, reverse=True)[:2]
    if len(cells) - shown.count(None) < 2:
        return cells
    ranks = [levels.index(value) + 1 if value in levels else 0 for value in shown]
    return [replace(cell, rank=rank) for cell, rank in zip(cells, ranks, strict=True)]


def improvements(rows: Rows, columns: Sequence[Column]) -> Rows:
    """Rows of how much DPAA improves on the best of the paper's baselines, ours and as printed, in percent."""
    baselines = [cells for label, cells in rows if label in paper.BASELINES]

    def improvement(own: Cell, index: int) -> Cell:
        column = columns[index]
        if not column.metric.startswith(ACCURACY):
            return Cell(text="")
        best = max((cells[index].mean for cells in baselines if cells[index].values), default=0.0)
        printed = max((column.printed.get(name, 0.0) for name in paper.BASELINES), default=0.0)
        theirs = 100 * (own.paper / printed - 1) if own.paper is not None and printed else None
        return Cell((100 * (own.mean / best - 1),) if own.values and best > 0 else (), theirs, form=".1f")

    return [
        (f"{label}: improvement over the best baseline, %", [improvement(cell, i) for i, cell in enumerate(cells)])
        for label, cells in rows
        if baselines and paper.row_of(label) == "dpaa"
    ]


def curves(severities: Sequence[float], rows: Rows) -> Chart:
    """Our recall@20 over the severity, a line per row.

    Parameters
    ----------
    severities : of the columns
    rows : of the table

    Returns
    -------
    the chart
    """
    means = {label: [cell.mean if cell.values else None for cell in cells] for label, cells in rows}
    lines = [Line(label, severities, means[label], index) for index, label in enumerate(means)]
    return line(lines, "severity of the bias", "recall@20", x_axis="steps")


# ---------------------------------------------------------------------- files


def write_chapters(chapters: Sequence[Chapter], folder: Path, name: str, suffix: str, how: str) -> list[Path]:
    """Write a CSV file per chapter, its figures as PNG and SVG, and one page of all in Markdown.

    Parameters
    ----------
    chapters : in their order
    folder : where the files go
    name, suffix : of the page, and what the names of all files end in
    how : the budget and the call that make them, which the page names

    Returns
    -------
    the files, the page last
    """
    files = []
    for chapter in chapters:
        text = io.StringIO()
        writer = csv.DictWriter(text, CSV_HEADER, lineterminator="\n")
        writer.writeheader()
        writer.writerows(record for table in chapter.tables for record in table.records())
        files.append(_write(folder / f"{chapter.name}{suffix}.csv", text.getvalue()))
        for figure, drawn in chapter.figures.items() if find_spec("altair") else ():  # an extra
            files += save_figure(curves(*drawn), folder, f"{figure}{suffix}")
    body = "\n".join(chapter.markdown() for chapter in chapters)
    return [*files, _write(folder / f"{name}{suffix}.md", f"# Published tables, reproduced\n\n{how}\n\n{body}")]


def _write(target: Path, content: str) -> Path:
    write_file(target, content, "free some space or choose another folder with --out", make_folders=True)
    return target
