"""What the documentation site needs besides MkDocs: pages from outside of docs/, generated pages, and links to both.

A link of a page to a file of the repository becomes a link to that file's page, or, where it has none, to the file
in the repository online; a link to a file that does not exist stops the build.  A link that is called by the name of
its file is called by that page's title instead.  `mkdocs.yml` names this file as a hook.
"""

from __future__ import annotations

import posixpath
import re
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[1]))  # MkDocs loads this file by its path

from scripts import help_pages, methods_page, notebooks

if TYPE_CHECKING:
    from collections.abc import Callable

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
BROUGHT = {
    **{f"{name}.md": f"project/{name}.md" for name in ("CHANGELOG", "CODE_OF_CONDUCT", "CONTRIBUTING", "SECURITY")},
    **{
        f"benchmarks/{file.name}": f"project/benchmarks/{file.name}"
        for file in sorted((ROOT / "benchmarks").glob("*.md"))
    },
}
"""Files of the repository that are pages of the site too, and where."""
NOTEBOOKS = {file: f"notebooks/{file.stem}.md" for file in sorted(notebooks.FOLDER.glob("*.ipynb"))}
GENERATED: dict[str, Callable[[], str]] = {
    "help.md": help_pages.page,
    "reference/methods.md": methods_page.page,
    **{page: partial(notebooks.page, file) for file, page in NOTEBOOKS.items()},
}
"""Pages of the site that are written while it is built."""
PAGES = BROUGHT | {f"docs/{page}": page for page in GENERATED} | {"README.md": "index.md"}
PAGES |= {f"docs/notebooks/{file.name}": page for file, page in NOTEBOOKS.items()}
"""Where a link to a file of the repository leads; the site has a first page of its own."""
LAST_WITH_PAGES = "02f61c4"
"""The last commit that has the pages of results and the studies behind them."""
LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?(?=\))")
NAMED = re.compile(r"\[([\w/.-]+\.md)\](?=\((?!https?:)([^)#\s]+))")
"""A link that is called by the name of a file."""
FENCE = re.compile(r"^(```|~~~).*?^\1\s*$", re.MULTILINE | re.DOTALL)


class BrokenLinkError(Exception):
    """A page names a file that is not there."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add pages from outside of docs/ and generated ones; the results' pages are reached from their overview."""
    from mkdocs.structure.files import File, InclusionLevel

    for page, content in GENERATED.items():
        files.append(File.generated(config, page, content=content()))
    for source, page in BROUGHT.items():
        made = File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8"))
        if source.startswith("benchmarks/"):
            made.inclusion = InclusionLevel.NOT_IN_NAV
        files.append(made)
    for file in files.documentation_pages():
        if file.src_uri.startswith("results/") and not file.src_uri.endswith("README.md"):
            file.inclusion = InclusionLevel.NOT_IN_NAV
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: object) -> str:
    """The page with links that the site can follow."""
    return relinked(markdown, page.file.src_uri, str(config.repo_url))


def relinked(markdown: str, page: str, repository: str) -> str:
    """Links of a page, by its place in the site, outside of blocks of code."""
    home = next((source for source, brought in BROUGHT.items() if brought == page), f"docs/{page}")

    def place(link: str) -> str:
        return posixpath.normpath(posixpath.join(posixpath.dirname(home), link))

    def titled(match: re.Match[str]) -> str:
        file = ROOT / place(match[2])
        title = re.search(r"^# (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE) if file.is_file() else None
        return f"[{title[1]}]" if title else match[0]

    def link(match: re.Match[str]) -> str:
        anchor = match[2] or ""
        target = place(match[1])
        if known := PAGES.get(target):
            return posixpath.relpath(known, posixpath.dirname(page) or ".") + anchor
        if home == "CHANGELOG.md" and not (ROOT / target).exists():
            return f"{repository}/blob/{LAST_WITH_PAGES}/{target}{anchor}"  # history names files that are gone
        if target.startswith("../") or not (ROOT / target).exists():
            raise BrokenLinkError(f"{home} links to {match[1]}, and there is no {target}")
        inside = target.removeprefix("docs/")
        if inside != target and (ROOT / target).is_file():
            return posixpath.relpath(inside, posixpath.dirname(page) or ".") + anchor
        kind = "tree" if (ROOT / target).is_dir() else "blob"
        return f"{repository}/{kind}/main/{target}{anchor}"

    def changed(text: str) -> str:
        return LINK.sub(link, NAMED.sub(titled, text))

    pieces, end = [], 0
    for fence in FENCE.finditer(markdown):
        pieces += [changed(markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*pieces, changed(markdown[end:])])
