"""The files of a chapter."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from dpaa.reproduction.tables import Chapter
from dpaa.reproduction.writing import write_chapter
from tests.reproduction.test_tables import table


def test_files_of_a_chapter(tmp_path: Path) -> None:
    folder = tmp_path
    chapter = Chapter("c", "Chapter", ("About.",), (table(),), missing=("als is left out",))
    files = write_chapter(chapter, folder, "c-quick", "dpaa reproduce c", figures=False)
    assert [file.name for file in files] == ["c-quick.md", "c-quick.tex", "c-quick.csv"]
    found = list(csv.DictReader(io.StringIO((folder / "c-quick.csv").read_text())))
    assert found[2]["paper"] == "0.13"
    assert "    dpaa reproduce c\n" in (folder / "c-quick.md").read_text()
    assert "- als is left out" in (folder / "c-quick.md").read_text()
