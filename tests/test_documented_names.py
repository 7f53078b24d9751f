"""What the pages for developers name is there: symbols of docs/notation.md, files of docs/architecture.md."""

import re
from pathlib import Path

import pytest

import dpaa

ROOT = Path(__file__).parents[1]
SOURCE = Path(dpaa.__file__).parent
DEFINED = r"(?:(?:def|class) {0}\b|\b{0}\s*[:=,]|\.{0}\b|\"{0}\")"


def cells(column: int) -> list[str]:
    rows = (ROOT / "docs" / "notation.md").read_text(encoding="utf-8").splitlines()
    return [row.split("|")[column] for row in rows if row.startswith("|")][2:]


def test_names_of_the_notation_exist() -> None:
    text = "\n".join(file.read_text(encoding="utf-8") for file in SOURCE.rglob("*.py"))
    names = {name for cell in cells(2) for code in re.findall(r"`([^`]+)`", cell) for name in re.findall(r"\w+", code)}
    assert len(names) > 50
    assert not [name for name in sorted(names) if not re.search(DEFINED.format(name), text)]


@pytest.mark.parametrize("page", ["docs/architecture.md", "docs/metrics.md", "CONTRIBUTING.md"])
def test_files_that_are_named_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    places = set(re.findall(r"`((?:\w+/)+\w+\.(?:py|html|md))`", text))
    assert places
    missing = [
        one for one in sorted(places) if not any((base / one).exists() for base in (ROOT, SOURCE, SOURCE.parent))
    ]
    assert not [one for one in missing if "NAME" not in one and "COMMAND" not in one]
