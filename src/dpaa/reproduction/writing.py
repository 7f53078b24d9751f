"""Chapters become files: Markdown, LaTeX, CSV, figures and one self-contained page."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from dpaa._io import write_file
from dpaa.errors import InputError
from dpaa.report import parts
from dpaa.report.figures import altair, save
from dpaa.report.page import page
from dpaa.report.rendering import html, render, with_code
from dpaa.report.theme import PAPER
from dpaa.reproduction.tables import CSV_HEADER, Chapter

FIGURE_FORMATS = ("png", "svg")


def check_target(folder: Path, figures: bool) -> None:
    """Refuse, before anything is trained, what could not be written afterwards."""
    if figures:
        altair()
    around = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
    if not around.is_dir():
        raise InputError(f"{around} is a file; name a folder with --out DIR")


def write_chapter(chapter: Chapter, folder: Path, stem: str, command: str, figures: bool) -> list[Path]:
    """`<stem>.md`, `.tex`, `.csv` and each figure as PNG and SVG."""
    drawn, shown = [], []
    for figure in chapter.figures if figures else ():
        own = figure.name.removeprefix(chapter.name).strip("-")
        name = f"{stem}-{own}" if own else stem
        drawn += [save(figure.draw(PAPER), folder / f"{name}.{form}") for form in FIGURE_FORMATS]
        shown.append(f"![{figure.description}]({name}.png)\n\n{figure.title}. {figure.reading}")
    text = [
        f"# {chapter.title}",
        *([f"**{chapter.conclusion}**"] if chapter.conclusion else []),
        *chapter.about,
        f"Made by\n\n    {command}",
        *shown,
    ]
    text += [table.markdown().rstrip("\n") for table in chapter.tables]
    if chapter.missing:
        text.append("Not shown, or to be known:\n\n" + "\n".join(f"- {line}" for line in chapter.missing))
    comments = "".join(f"% {line}\n" for line in (command, *chapter.about))
    cells = io.StringIO()
    rows = [CSV_HEADER, *(row for table in chapter.tables for row in table.csv_rows())]
    csv.writer(cells, lineterminator="\n").writerows(rows)
    files = [
        _write(folder / f"{stem}.md", "\n\n".join(text) + "\n"),
        _write(folder / f"{stem}.tex", "\n".join([comments, *(table.latex() for table in chapter.tables)])),
        _write(folder / f"{stem}.csv", cells.getvalue()),
    ]
    return [*files, *drawn]


def write_page(chapters: Sequence[Chapter], folder: Path, stem: str, command: str, figures: bool) -> Path:
    """All chapters on one page that needs no network."""
    sections = []
    for chapter in chapters:
        content = render(
            "chapter.html",
            conclusion=chapter.conclusion,
            about=[with_code(line) for line in chapter.about],
            figures=chapter.figures if figures else (),
            tables=[table.html() for table in chapter.tables],
            missing=chapter.missing,
        )
        sections.append(parts.Section(chapter.name, chapter.title, chapter.title, content))
    how = html("<p>Every number of this page is made again by <code>{}</code>.</p>", command)
    sections.append(parts.Section("provenance", "Provenance", "Provenance", how))
    return _write(folder / f"{stem}.html", page("The DPAA paper, reproduced", sections))


def _write(target: Path, content: str) -> Path:
    """Whole or not at all."""
    write_file(target, content, "make room or choose another place with --out", make_folders=True)
    return target
