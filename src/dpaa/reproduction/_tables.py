"""Results become tables: ours over seeds with the paper's number beside it, as CSV and on one HTML page."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from dpaa import report as parts
from dpaa._io import write_file
from dpaa.errors import InputError
from dpaa.report import PAPER, altair, html, page, render, save, with_code
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
    form : format of a number; `%` is a relative change in percent
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
        """Over the seeds; NaN without any."""
        return float(np.mean(self.values)) if self.values else math.nan

    @property
    def deviation(self) -> float:
        """Standard deviation over the seeds (n − 1)."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else math.nan

    def ours(self) -> str:
        """`0.1471 ± 0.0134`; without deviation for one run, a dash without any."""
        if self.text is not None or not self.values:
            return self.text if self.text is not None else "–"
        return self._number(self.mean) + (f" ± {self._number(self.deviation)}" if len(self.values) > 1 else "")

    def beside(self) -> str:
        """`0.1301, +0.0170`: the paper's, and ours minus the paper's."""
        if self.paper is None:
            return ""
        difference = f", {parts.minus(format(self.mean - self.paper, '+' + self.form))}" if self.form != "%" else ""
        return self._number(self.paper) + (difference if self.values else "")

    def _number(self, value: float) -> str:
        return parts.minus(f"{value:+.1f}%" if self.form == "%" else format(value, self.form))


Rows = tuple[tuple[str, tuple[Cell, ...]], ...]
"""Labels and cells."""


@dataclass(frozen=True)
class Table:
    """A table of cells.

    Parameters
    ----------
    name : identifies its rows in the CSV file; unique in a chapter
    title, corner, columns : headings; the corner is that of the labels
    rows : labels and cells
    footer : rows that are computed from the others
    notes : sentences below the table
    on_screen : whether it is printed on the terminal, too
    """

    name: str
    title: str
    corner: str
    columns: tuple[str, ...]
    rows: Rows
    footer: Rows = ()
    notes: tuple[str, ...] = ()
    on_screen: bool = True

    def records(self) -> list[dict[str, Any]]:
        """A record per cell in full precision, with the fields of `CSV_HEADER`."""
        records = []
        for label, cells in self.rows + self.footer:
            for column, cell in zip(self.columns, cells, strict=True):
                apart = math.nan if cell.paper is None else cell.mean - cell.paper
                values = (cell.mean if cell.text is None else cell.text, cell.deviation, len(cell.values), cell.paper)
                shown = (self.name, label, column, *values, apart, cell.rank or None)
                records.append({name: _or_empty(value) for name, value in zip(CSV_HEADER, shown, strict=True)})
        return records

    def html(self) -> Markup:
        """For the page."""
        worded = [any(cells[index].text is not None for _, cells in self.rows) for index in range(len(self.columns))]
        heads = [parts.Head(self.corner, numeric=False)]
        heads += [parts.Head(name, numeric=not words) for name, words in zip(self.columns, worded, strict=True)]
        rows = [[parts.Cell(html("{}", label)), *map(_html, cells)] for label, cells in self.rows + self.footer]
        table = parts.table(with_code(self.title), heads, rows, sortable=not self.footer)
        return Markup().join([table, *(html("<p>{}</p>", with_code(note)) for note in self.notes)])


@dataclass(frozen=True)
class Chapter:
    """What one experiment shows.

    Parameters
    ----------
    name, title : of its files, and its heading
    about : what was done, in sentences
    tables, figures : in their order
    missing : what could not be shown, and what it would take
    """

    name: str
    title: str
    about: tuple[str, ...]
    tables: tuple[Table, ...]
    figures: tuple[parts.Figure, ...] = ()
    missing: tuple[str, ...] = ()


def _or_empty(value: Any) -> Any:
    return "" if value is None or (isinstance(value, float) and math.isnan(value)) else value


def _html(cell: Cell) -> parts.Cell:
    ours = html("<u>{}</u>" if cell.rank == 2 else "{}", cell.ours())
    theirs = html("<small><br>({})</small>", cell.beside()) if cell.beside() else ""
    return parts.Cell(ours + theirs, None if cell.text is not None else cell.mean, best=cell.rank == 1)


# ---------------------------------------------------------------------- from results to cells


@dataclass(frozen=True)
class Column:
    """What a column of a table measures."""

    title: str
    data: str
    metric: str
    overlap: str = "drop"
    printed: Mapping[str, float] = field(default_factory=dict)
    """The paper's values by its rows."""


@dataclass(frozen=True)
class Row:
    """What a row of a table shows."""

    name: str
    label: str
    """Of its results."""
    paper: str
    """The paper's row; empty if it has none."""


def measured(results: Sequence[RunResult], rows: Sequence[Row], columns: Sequence[Column]) -> Rows:
    """Cells of all rows, the best and second best of each column of accuracies marked."""
    by_column = []
    for column in columns:
        values: dict[str, list[float]] = {row.label: [] for row in rows}
        for one in results:
            value = one.value(column.metric, column.overlap)
            if one.data == column.data and one.label in values and value is not None:
                values[one.label].append(value)
        form = ".1f" if column.metric.startswith("arp") else ".4f"  # ARP counts pairs, all others are below 1
        cells = [Cell(tuple(values[row.label]), column.printed.get(row.paper), form) for row in rows]
        by_column.append(ranked(cells) if column.metric.startswith(ACCURACY) else cells)
    return tuple((row.name, tuple(cells[index] for cells in by_column)) for index, row in enumerate(rows))


def ranked(cells: Sequence[Cell]) -> Sequence[Cell]:
    """The same cells with best and second best (high is good) marked, compared as shown with four digits."""
    shown = [round(cell.mean, 4) if cell.values else None for cell in cells]
    levels = sorted({value for value in shown if value is not None}, reverse=True)[:2]
    if len(cells) - shown.count(None) < 2:
        return cells
    ranks = [levels.index(value) + 1 if value in levels else 0 for value in shown]
    return [replace(cell, rank=rank) for cell, rank in zip(cells, ranks, strict=True)]


def improvements(rows: Rows, columns: Sequence[Column]) -> Rows:
    """How much DPAA's rows improve on the best of the paper's baselines, ours and as printed, in percent."""
    baselines = [cells for label, cells in rows if paper.row_of(label) in paper.BASELINES]

    def improvement(own: Cell, index: int) -> Cell:
        column = columns[index]
        if not column.metric.startswith(ACCURACY):
            return Cell(text="")
        best = max((cells[index].mean for cells in baselines if cells[index].values), default=0.0)
        printed = max((column.printed.get(name, 0.0) for name in paper.BASELINES), default=0.0)
        theirs = 100 * (own.paper / printed - 1) if own.paper is not None and printed else None
        return Cell((100 * (own.mean / best - 1),) if own.values and best > 0 else (), theirs, form="%")

    dpaa = [(label, cells) for label, cells in rows if paper.row_of(label) == "dpaa"] if baselines else []
    return tuple(
        (f"{label}: improvement over the best baseline", tuple(improvement(c, i) for i, c in enumerate(cells)))
        for label, cells in dpaa
    )


# ---------------------------------------------------------------------- files


def check_target(folder: Path, figures: bool) -> None:
    """Refuse, before anything is trained, what could not be written afterwards.

    Parameters
    ----------
    folder : where the files will go
    figures : whether figures will be drawn, which needs an extra
    """
    if figures:
        altair()
    existing = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    if not existing.is_dir():
        raise InputError(f"{existing} is a file; name a folder with --out DIR")


def write_chapter(chapter: Chapter, folder: Path, stem: str, figures: bool) -> list[Path]:
    """Write `<stem>.csv`, and each figure as PNG and SVG.

    Parameters
    ----------
    chapter : what to write
    folder, stem : where, and how the names begin
    figures : whether to draw the figures

    Returns
    -------
    the files
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, CSV_HEADER, lineterminator="\n")
    writer.writeheader()
    writer.writerows(record for table in chapter.tables for record in table.records())
    files = [_write(folder / f"{stem}.csv", text.getvalue())]
    for figure in chapter.figures if figures else ():
        name = "-".join(filter(None, [stem, figure.name.removeprefix(chapter.name).strip("-")]))
        files += [save(figure.draw(PAPER), folder / f"{name}.{form}") for form in ("png", "svg")]
    return files


def write_page(chapters: Sequence[Chapter], folder: Path, stem: str, command: str, figures: bool) -> Path:
    """Write all chapters on one page that needs no network.

    Parameters
    ----------
    chapters : in their order
    folder, stem : where, and the name
    command : the call that makes it, which the page names
    figures : whether to draw the figures

    Returns
    -------
    the file
    """
    sections = []
    for chapter in chapters:
        content = render(
            "chapter.html",
            about=[with_code(line) for line in chapter.about],
            figures=chapter.figures if figures else (),
            tables=[table.html() for table in chapter.tables],
            missing=chapter.missing,
        )
        sections.append(parts.Section(chapter.name, chapter.title, chapter.title, content))
    how = html("<p>Every number of this page is made by <code>{}</code>.</p>", command)
    sections.append(parts.Section("provenance", "Provenance", "Provenance", how))
    return _write(folder / f"{stem}.html", page("The DPAA paper, reproduced", sections))


def _write(target: Path, content: str) -> Path:
    write_file(target, content, "make room or choose another place with --out", make_folders=True)
    return target
