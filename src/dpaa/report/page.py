"""The page: one HTML file that needs no network, made of sections; the same figures as files for papers."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path

from markupsafe import Markup

import dpaa
from dpaa._io import check_file_target, write_file
from dpaa._text import finite
from dpaa.auditing import Audit
from dpaa.report.figures import altair, check_figures, save
from dpaa.report.inputs import Inputs, gather
from dpaa.report.lenient import lenient
from dpaa.report.parts import Section, suffix
from dpaa.report.records import AuditFile
from dpaa.report.rendering import render
from dpaa.report.sections import audit as audit_section
from dpaa.report.sections import (
    comparison,
    data,
    dial,
    exposure,
    frontier,
    groups,
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
    names = ", ".join(dict.fromkeys(family.name for family in inputs.families))
    html = page(title or (f"Popularity bias: {names}" if names else "Popularity bias report"), chapters)
    if figures is not None:
        for figure in [figure for chapter in chapters for figure in chapter.figures]:
            save(figure.draw(PAPER), figures / f"{figure.name}.{figure_format}")
    write_file(file, html, ROOM, make_folders=True)
    return inputs


def audit_page(audit: Audit, file: str | Path) -> None:
    """An audit as a page of its own."""
    check_page(file)
    chapter = audit_section.section(audit.source, lenient(AuditFile, finite(audit.as_json())))
    write_file(file, page("Popularity audit", [chapter]), ROOM, make_folders=True)


def sections(inputs: Inputs) -> list[Section]:
    """In the order of reading: the verdict first, what specialists look for last; those that have something to say."""
    found = [
        summary.section(inputs),
        *(frontier.section(content, suffix(place)) for place, content in enumerate(inputs.frontiers)),
        *(chapter.section(inputs) for chapter in (exposure, metrics, groups)),
        *(
            comparison.section(name, content, suffix(place), inputs.runs)
            for place, (name, content) in enumerate(inputs.comparisons)
        ),
        *(chapter.section(inputs) for chapter in (data, items, users)),
        *(audit_section.section(name, content, suffix(place)) for place, (name, content) in enumerate(inputs.audits)),
        *(replace(chapter.section(inputs), folded=True) for chapter in (dial, training, trace, provenance)),
    ]
    return [section for section in found if section.content.strip()]


def page(title: str, chapters: Sequence[Section]) -> str:
    """The whole document."""
    assets = resources.files("dpaa.report").joinpath("assets")
    style, script = (assets.joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return render(
        "page.html",
        title=title,
        policy=CSP.format(script=f"sha256-{digest}"),
        version=dpaa.__version__,
        made=now().replace("T", " ").replace("+00:00", " UTC"),
        style=Markup(style),
        script=Markup(script),
        sections=chapters,
    )


def check_page(file: str | Path) -> None:
    """Refuse, before anything is computed, what cannot become a page."""
    altair()
    check_file_target(file, (".html", ".htm"), "a page", make_folders=True)
