"""The page: one HTML file that needs no network, made of sections; the same figures as files for papers."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from importlib import resources
from pathlib import Path

import dpaa
from dpaa.auditing.audit import Audit
from dpaa.errors import InputError
from dpaa.files import check_file_target, write_file
from dpaa.report.figures import altair, check_figure, save
from dpaa.report.inputs import Inputs, gather
from dpaa.report.markup import Markup, join, tag
from dpaa.report.parts import Figure, Section
from dpaa.report.sections import audit as audit_section
from dpaa.report.sections import (
    comparison,
    data,
    dial,
    exposure,
    items,
    metrics,
    provenance,
    summary,
    trace,
    training,
    users,
)
from dpaa.report.theme import PAPER
from dpaa.runs.folder import now
from dpaa.text import finite

CHAPTERS = (
    *(summary.section, data.section, metrics.section, exposure.section, items.section),
    *(users.section, training.section, trace.section, dial.section),
)
"""In the order of reading; comparisons come after the metrics, audits and how it was made at the end."""
ROOM = "make room or choose another place with --out"
CSP = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src '{script}'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)
"""What the page may do: show itself and run its own script, known by its hash; nothing is ever loaded."""


def write_page(
    paths: Iterable[str | Path],
    file: str | Path,
    *,
    k: int = 20,
    title: str | None = None,
    figures: Path | None = None,
    figure_format: str = "svg",
) -> Inputs:
    """One page from datasets, runs, comparisons and audits; with `figures` each figure also as a file of its own.

    Returns what the page was made of; its notes say what is missing.
    """
    check_page(file)
    if figures is not None:
        check_figures(figures, figure_format)
    inputs = gather(paths, k)
    chapters = sections(inputs)
    html = page(title or _title(inputs), chapters)
    if figures is not None:
        save_figures(chapters, figures, figure_format)
    write_file(file, html, ROOM, make_folders=True)
    return inputs


def audit_page(audit: Audit, file: str | Path) -> None:
    """An audit as a page of its own."""
    check_page(file)
    chapter = audit_section.section(audit.source, finite(audit.as_json()))
    write_file(file, page("Popularity audit", [chapter]), ROOM, make_folders=True)


def sections(inputs: Inputs) -> list[Section]:
    """The chapters that have something to say."""
    found = []
    for chapter in CHAPTERS:
        found.append(chapter(inputs))
        if chapter is metrics.section:
            found += [
                comparison.section(name, content, f"-{place + 1}" if place else "", inputs.runs)
                for place, (name, content) in enumerate(inputs.comparisons)
            ]
    found += [
        audit_section.section(name, content, f"-{place + 1}" if place else "")
        for place, (name, content) in enumerate(inputs.audits)
    ]
    found.append(provenance.section(inputs))
    return [section for section in found if section.parts]


def page(title: str, chapters: Sequence[Section]) -> str:
    """The whole document."""
    style, script = _asset("page.css"), _asset("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    links = [tag("li", tag("a", chapter.short, href=f"#{chapter.id}")) for chapter in chapters]
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=CSP.format(script=f"sha256-{digest}")),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="generator", content=f"dpaa {dpaa.__version__}"),
        tag("title", title),
        tag("link", rel="icon", href="data:,"),
        tag("style", Markup(style)),
    )
    toggle = tag("button", "Dark", type="button", id="theme", aria_pressed="false", title="Switch light and dark")
    body = tag(
        "body",
        tag("a", "Skip to content", href="#content", class_="skip"),
        tag(
            "header",
            tag("div", tag("h1", title), toggle, class_="bar"),
            tag("p", f"Made by dpaa {dpaa.__version__} on {now().replace('T', ' ').replace('+00:00', ' UTC')}."),
        ),
        tag("nav", tag("ul", links), aria_label="Chapters"),
        tag("main", [chapter.html() for chapter in chapters], id="content"),
        tag("footer", tag("p", "This page is one file: it can be kept, sent and printed, and it loads nothing.")),
        tag("div", id="tip", role="status", aria_live="off", hidden=True),
        tag("script", Markup(script)),
    )
    return join(Markup("<!DOCTYPE html>\n"), tag("html", head, body, lang="en"), Markup("\n"))


def save_figures(chapters: Iterable[Section], folder: Path, figure_format: str) -> list[Path]:
    """Every figure of the page for print, in the paper's look."""
    return [
        save(part.draw(PAPER), folder / f"{part.name}.{figure_format}")
        for chapter in chapters
        for part in chapter.parts
        if isinstance(part, Figure)
    ]


def check_page(file: str | Path) -> None:
    """Refuse, before anything is computed, what cannot become a page."""
    altair()
    check_file_target(file, (".html", ".htm"), "a page", make_folders=True)


def check_figures(folder: Path, figure_format: str) -> None:
    """The same for the folder of figures."""
    check_figure(folder / f"figure.{figure_format}")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; choose a folder with --figures")


def _title(inputs: Inputs) -> str:
    names = list(dict.fromkeys(family.name for family in inputs.families))
    return f"Popularity bias: {', '.join(names)}" if names else "Popularity bias report"


def _asset(name: str) -> str:
    return resources.files("dpaa.report").joinpath("assets", name).read_text(encoding="utf-8")
