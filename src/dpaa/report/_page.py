"""The page: one HTML file that needs no network, made of sections; the same figures as files."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from importlib import resources
from pathlib import Path

from markupsafe import Markup

import dpaa
from dpaa._io import check_file_target, write_file
from dpaa._text import finite
from dpaa.auditing import Audit
from dpaa.report import _background, _documents, _runs
from dpaa.report._charts import altair, check_figures, save
from dpaa.report._html import Section, render, suffix
from dpaa.report._inputs import Audited, Comparison, Frontier, Inputs, gather, parse
from dpaa.runs.folder import now

REMEDY = "free some space or choose another file with --out"
BACKGROUND = (_background.dial, _background.training, _background.trace, _background.provenance)
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
    """Write one page from datasets, runs, comparisons and audits.

    Parameters
    ----------
    paths : as `gather` reads them
    file : the page, `.html`
    k : length of the lists that exposure is counted in
    title : heading; names the datasets unless given
    figures : folder to which each figure is also written as a file
    figure_format : of these files

    Returns
    -------
    what the page was made of; its notes say what is missing
    """
    check_page(file)
    if figures is not None:
        check_figures(figures, figure_format)
    inputs = gather(paths, k)
    sections = _sections(inputs)
    names = ", ".join(dict.fromkeys(family.name for family in inputs.families))
    html = page(title or (f"Popularity bias: {names}" if names else "Popularity bias report"), sections)
    if figures is not None:
        for figure in [figure for section in sections for figure in section.figures]:
            save(figure.chart, figures / f"{figure.name}.{figure_format}")
    write_file(file, html, REMEDY, make_folders=True)
    return inputs


def audit_page(audit: Audit, file: str | Path) -> None:
    """Write an audit as a page of its own.

    Parameters
    ----------
    audit : result of `dpaa.audit`
    file : the page, `.html`
    """
    check_page(file)
    write_file(file, page("Popularity audit", [_audit_section(audit)]), REMEDY, make_folders=True)


def _audit_section(audit: Audit) -> Section:
    return _documents.audit(parse(Audited, finite(audit.as_json()), audit.source))


def _sections(inputs: Inputs) -> list[Section]:
    """The verdict first, what specialists look for last; those that have something to show."""
    sections = [
        _runs.summary(inputs),
        *(_documents.frontier(content, suffix(index)) for index, content in enumerate(inputs.of(Frontier))),
        *(section(inputs) for section in (_runs.exposure, _runs.metrics, _runs.groups)),
        *(_documents.comparison(content, suffix(index)) for index, content in enumerate(inputs.of(Comparison))),
        *(section(inputs) for section in (_runs.data, _runs.items)),
        *(_documents.audit(content, suffix(index)) for index, content in enumerate(inputs.of(Audited))),
        *(section(inputs) for section in BACKGROUND),
    ]
    return [section for section in sections if section.content.strip()]


def page(title: str, sections: Sequence[Section]) -> str:
    """Make a whole document.

    Parameters
    ----------
    title : its heading
    sections : in the order of the page

    Returns
    -------
    HTML that loads nothing
    """
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
        sections=sections,
    )


def check_page(file: str | Path) -> None:
    """Refuse, before anything is computed, what cannot become a page.

    Parameters
    ----------
    file : must end in `.html` or `.htm`
    """
    altair()
    check_file_target(file, (".html", ".htm"), "a page", make_folders=True)
