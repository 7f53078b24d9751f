"""Every mistake of docs/errors.md ends with exit code 2 and the sentence beside it, and leaves nothing behind."""

import os
import re
import shlex
import sys
from pathlib import Path

import pytest

from dpaa.methods import METHODS
from tests.command import run_dpaa
from tests.errors.preparations import FILES, LATE, SPOILED
from tests.errors.workshop import tree

PAGE = Path(__file__).parents[2] / "docs" / "errors.md"
ROW = re.compile(r"^\| (.+?) \| `(.+?)` \| .+ \|$", re.MULTILINE)
MISTAKES: list[tuple[str, str]] = ROW.findall(PAGE.read_text(encoding="utf-8"))
"""What went wrong, and the command as it is typed in the folder of `workshop.build`."""
REMEDY = "run `DPAA_WRITE_DOCS=1 pytest tests/errors/test_catalogue.py`"


@pytest.mark.parametrize(("kind", "command"), MISTAKES, ids=[kind for kind, _ in MISTAKES])
def test_mistake(kind: str, command: str, workshop: Path, built: Path) -> None:
    if "/proc/" in command and sys.platform != "linux":
        pytest.skip("the folder that refuses is one of Linux")
    if kind in FILES:
        name, content = FILES[kind]
        (workshop / name).write_bytes(content.encode() if isinstance(content, str) else content)
    SPOILED.get(kind, lambda: None)()
    before = tree(workshop)
    result = run_dpaa(*shlex.split(command)[1:])
    assert result.code == 2, result
    assert result.out == ""
    *progress, last = result.err.splitlines()
    assert last.startswith("error: "), result.err
    assert bool(progress) == (kind in LATE), result.err
    assert tree(workshop) == before, "something was left behind"
    sentence = last.removeprefix("error: ").replace(", ".join(METHODS), "…")
    sentence = sentence.replace(str(workshop), "HERE").replace(str(built), "HERE").replace("|", "&#124;")
    check_row(f"| {kind} | `{command}` | ", f"{sentence} |")


def check_row(mistake: str, sentence: str) -> None:
    rows = PAGE.read_text(encoding="utf-8").splitlines()
    (number,) = [number for number, row in enumerate(rows) if row.startswith(mistake)]
    if os.environ.get("DPAA_WRITE_DOCS"):
        rows[number] = mistake + sentence
        PAGE.write_text("\n".join(rows) + "\n", encoding="utf-8")
    assert rows[number] == mistake + sentence, f"docs/errors.md differs: {REMEDY}"


def test_every_row_of_the_page_is_a_mistake_of_its_own() -> None:
    kinds = [kind for kind, _ in MISTAKES]
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith("| ") and not line.startswith("| mistake |")]
    assert len(kinds) == len(set(kinds)) == len(rows) >= 200
    assert set(FILES) | set(SPOILED) | LATE <= set(kinds), "prepared, but not on the page"
