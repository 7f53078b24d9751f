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
from tests.errors import (
    mistakes_in_audits,
    mistakes_in_comparisons,
    mistakes_in_datasets,
    mistakes_in_debiasing,
    mistakes_in_exports,
    mistakes_in_inputs,
    mistakes_in_recommendations,
    mistakes_in_reports,
    mistakes_in_reproductions,
    mistakes_in_serving,
    mistakes_in_studies,
    mistakes_in_tables,
    mistakes_with_rerankers,
    mistakes_with_runs,
    mistakes_with_the_dial,
)
from tests.errors.mistake import Mistake
from tests.errors.workshop import tree

SECTIONS = (
    mistakes_in_tables.SECTIONS
    | mistakes_in_inputs.SECTIONS
    | mistakes_in_datasets.SECTIONS
    | mistakes_with_runs.SECTIONS
    | mistakes_in_recommendations.SECTIONS
    | mistakes_in_audits.SECTIONS
    | mistakes_in_comparisons.SECTIONS
    | mistakes_in_reports.SECTIONS
    | mistakes_with_the_dial.SECTIONS
    | mistakes_with_rerankers.SECTIONS
    | mistakes_in_debiasing.SECTIONS
    | mistakes_in_exports.SECTIONS
    | mistakes_in_studies.SECTIONS
    | mistakes_in_reproductions.SECTIONS
    | mistakes_in_serving.SECTIONS
)
MISTAKES = [mistake for section in SECTIONS.values() for mistake in section]
PAGE = Path(__file__).parents[2] / "docs" / "errors.md"
REMEDY = "run `DPAA_WRITE_DOCS=1 pytest tests/errors`"
INTRODUCTION = """# What can go wrong, and what is said then

Every mistake below ends with exit code 2 and one sentence on standard error; nothing is written on standard output and
nothing is left behind.  The page is made by the tests, which make each mistake: """


def make(mistake: Mistake, built: Path) -> str:
    """Make a mistake in the current directory, a copy of `built`.  Returns the sentence."""
    here = Path.cwd()
    for name, content in mistake.files.items():
        (here / name).write_bytes(content.encode() if isinstance(content, str) else content)
    if mistake.spoil:
        mistake.spoil()
    before = tree(here)
    said = run_dpaa(*shlex.split(mistake.command)[1:])
    assert said.code == 2, said
    assert said.out == ""
    *before_it, last = said.err.splitlines()
    assert last.startswith("error: "), said.err
    assert bool(before_it) == mistake.progress, said.err
    sentence = last.removeprefix("error: ")
    for part in [mistake.says] if isinstance(mistake.says, str) else mistake.says:
        assert part in sentence, sentence
    assert tree(here) == before, "something was left behind"
    known = ", ".join(METHODS)
    return sentence.replace(known, "…").replace(str(here), "HERE").replace(str(built), "HERE")


def row(mistake: Mistake, sentence: str) -> str:
    cells = (mistake.kind, f"`{mistake.command}`".replace("\0", "␀"), sentence)
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def test_names_are_given_once() -> None:
    kinds = [mistake.kind for mistake in MISTAKES]
    assert len(kinds) == len(set(kinds))
    assert len(kinds) >= 80


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.kind)
def test_mistake(mistake: Mistake, workshop: Path, built: Path) -> None:
    if "/proc/" in mistake.command and sys.platform != "linux":
        pytest.skip("the place that refuses is one of Linux")
    line = row(mistake, make(mistake, built))
    if not os.environ.get("DPAA_WRITE_DOCS"):
        assert line in PAGE.read_text(encoding="utf-8").splitlines(), f"docs/errors.md differs: {REMEDY}"


def test_the_page_lists_these_mistakes_and_no_others(built: Path, tmp_path: Path) -> None:
    if os.environ.get("DPAA_WRITE_DOCS"):
        write_page(built, tmp_path)
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    listed = [line.split(" | ")[0].removeprefix("| ") for line in rows if not line.startswith("| mistake |")]
    assert listed == [mistake.kind for mistake in MISTAKES], f"docs/errors.md differs: {REMEDY}"


def write_page(built: Path, place: Path) -> None:
    lines = [INTRODUCTION + REMEDY + " after a change."]
    for title, mistakes in SECTIONS.items():
        lines += ["", f"## {title}", "", "| mistake | command | sentence |", "|---|---|---|"]
        for number, mistake in enumerate(mistakes):
            folder = Path(shutil.copytree(built, place / f"{title} {number}" / "workshop"))
            with contextlib.chdir(folder):
                lines.append(row(mistake, make(mistake, built)))
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
