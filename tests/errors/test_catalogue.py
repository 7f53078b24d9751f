"""Every mistake ends with exit code 2 and one clear sentence, and leaves nothing behind; docs/errors.md lists them."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from dpaa.methods import METHODS
from tests.command import run_dpaa
from tests.errors import mistakes_with_data, mistakes_with_models
from tests.errors.workshop import Mistake, tree

SECTIONS = mistakes_with_data.SECTIONS | mistakes_with_models.SECTIONS
MISTAKES = [mistake for section in SECTIONS.values() for mistake in section]
PAGE = Path(__file__).parents[2] / "docs" / "errors.md"
REMEDY = "run `DPAA_WRITE_DOCS=1 pytest tests/errors/test_catalogue.py`"
INTRODUCTION = """# What can go wrong, and what is said then

Every mistake below ends with exit code 2 and one sentence on standard error; nothing is written on standard output and
nothing is left behind.  The page is made by the tests, which make each mistake: """


def make(mistake: Mistake, built: Path) -> str:
    """Make a mistake in the current directory, a copy of `built`.  Returns the row of the page."""
    here = Path.cwd()
    for name, content in mistake.files.items():
        (here / name).write_bytes(content.encode() if isinstance(content, str) else content)
    if mistake.spoil:
        mistake.spoil()
    before = tree(here)
    result = run_dpaa(*shlex.split(mistake.command)[1:])
    assert result.code == 2, result
    assert result.out == ""
    *progress, last = result.err.splitlines()
    assert last.startswith("error: "), result.err
    assert bool(progress) == mistake.progress, result.err
    assert tree(here) == before, "something was left behind"
    sentence = last.removeprefix("error: ").replace(", ".join(METHODS), "…")
    cells = (mistake.kind, f"`{mistake.command}`", sentence.replace(str(here), "HERE").replace(str(built), "HERE"))
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.kind)
def test_mistake(mistake: Mistake, workshop: Path, built: Path) -> None:
    if "/proc/" in mistake.command and sys.platform != "linux":
        pytest.skip("the folder that refuses is one of Linux")
    row = make(mistake, built)
    if not os.environ.get("DPAA_WRITE_DOCS"):
        assert row in PAGE.read_text(encoding="utf-8").splitlines(), f"docs/errors.md differs: {REMEDY}"


def test_the_page_lists_these_mistakes_and_no_others(built: Path, tmp_path: Path) -> None:
    if os.environ.get("DPAA_WRITE_DOCS"):
        write_page(built, tmp_path)
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    listed = [line.split(" | ")[0].removeprefix("| ") for line in rows if not line.startswith("| mistake |")]
    assert listed == [mistake.kind for mistake in MISTAKES], f"docs/errors.md differs: {REMEDY}"
    assert len(set(listed)) == len(listed)


def write_page(built: Path, folder: Path) -> None:
    lines = [INTRODUCTION + REMEDY + " after a change."]
    for title, mistakes in SECTIONS.items():
        lines += ["", f"## {title}", "", "| mistake | command | sentence |", "|---|---|---|"]
        for number, mistake in enumerate(mistakes):
            copy = Path(shutil.copytree(built, folder / f"{title} {number}" / "workshop"))
            with contextlib.chdir(copy):
                lines.append(make(mistake, built))
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
