"""A comparison as a table for a paper, a page or a spreadsheet: LaTeX, Markdown, CSV.

LaTeX and Markdown have a row per entry and a column per metric: the mean over runs, ± their deviation where there are
several, the best of a column in bold, and a mark where the difference to the baseline is more than chance explains.
CSV has a row per entry and metric, with every number behind that.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from dpaa._io import write_file
from dpaa._text import on_one_line
from dpaa.comparison.entries import write_comparison
from dpaa.comparison.result import ROW_COLUMNS, SHOWN, Comparison

LATEX_MARKS = {"+": "$^{+}$", "−": "$^{-}$", "↑": r"$^{\uparrow}$", "↓": r"$^{\downarrow}$"}
_SPECIAL = re.compile(r"[&%$#_{}~^\\]")
_LATEX = {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}


def write_table(found: Comparison, file: Path) -> None:
    """Write a comparison in the form of the file's ending; the file appears whole or not at all."""
    if file.suffix.lower() == ".json":
        write_comparison(found, file)
    else:
        write_file(file, FORMS[file.suffix.lower()](found), "make room or choose another place with --out")


def markdown_table(found: Comparison) -> str:
    """A table of GitHub's Markdown, what it was measured on above it and its legend below."""
    header, rows = found.cells(_markdown_text, "**{}**", {mark: f" {mark}" for mark in SHOWN.values()})
    lines = [f"| {' | '.join(row)} |" for row in (header, ["---"] + ["---:"] * (len(header) - 1), *rows)]
    title = f"Test split of {_markdown_text(str(found.dataset['name']))}, lists of {found.k}."
    return "\n".join([title, "", *lines, "", _legend(found, _markdown_text, {}), ""])


def latex_table(found: Comparison) -> str:
    """A `table` for a paper that uses the package booktabs."""
    header, rows = found.cells(_latex_text, r"\textbf{{{}}}", LATEX_MARKS, r" $\pm$ ")
    title = f"Test split of {_latex_text(str(found.dataset['name']))}, lists of {found.k}."
    caption = f"{title} {_legend(found, _latex_text, LATEX_MARKS)}"
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


def csv_table(found: Comparison) -> str:
    """Every number of every entry and metric; empty where there is none."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(ROW_COLUMNS)
    for row in found.rows():
        rows.writerow(["" if value is None or value != value else value for value in row.values()])
    return text.getvalue()


FORMS: dict[str, Callable[[Comparison], str]] = {".md": markdown_table, ".tex": latex_table, ".csv": csv_table}
ENDINGS = (".json", *FORMS)
"""Of the files that `write_table` writes."""


def _legend(found: Comparison, escape: Callable[[str], str], marks: Mapping[str, str]) -> str:
    words = ", ".join(f"{marks.get(mark, mark)} {word}" for word, mark in SHOWN.items())
    tested = f"corrected p below .05 ({found.family}; {found.design})"
    several = " ±: standard deviation over runs." if any(entry.deviation for entry in found.entries) else ""
    return f"Bold: best. {words} than " + escape(f"{found.baseline}, {tested}.{several}")


def _markdown_text(text: str) -> str:
    return re.sub(r"([\\`*_|<>\[\]])", r"\\\1", on_one_line(text))


def _latex_text(text: str) -> str:
    return _SPECIAL.sub(lambda found: _LATEX.get(found[0], f"\\{found[0]}"), on_one_line(text)).replace("±", r"$\pm$")
