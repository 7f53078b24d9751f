"""Tables of real data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.reproduction.conftest import cells


def test_numbers_are_the_results_and_no_table_mixes_conventions(twice: Path) -> None:
    folder = twice
    results = [json.loads(file.read_text()) for file in (folder / "results" / "overall").iterdir()]
    rows = [row for row in cells(folder, "overall") if row["row"] == "ips" and row["column"] == "recall@20"]
    for overlap in ("drop", "mask", "keep"):
        values = [one["metrics"][overlap]["recall@20"] for one in results if one["method"] == "ips"]
        row = next(row for row in rows if row["table"] == f"coat-{overlap}")
        assert len(values) == int(row["seeds"]) == 2
        assert float(row["mean"]) == pytest.approx(sum(values) / 2)
        assert float(row["difference"]) == pytest.approx(sum(values) / 2 - 0.2107)
    dialled = next(row for row in rows if row["table"] == "coat-drop-dial")
    values = [one["dial"]["metrics"]["recall@20"] for one in results if one["method"] == "ips"]
    assert float(dialled["mean"]) == pytest.approx(sum(values) / 2)
    text = (folder / "out" / "overall-quick.md").read_text(encoding="utf-8")
    assert [text.count(f"overlap convention `{name}`\n") for name in ("drop", "mask", "keep")] == [1, 1, 1]
    assert "Nearest convention by row of the paper" in text
    assert "most-popular" in text  # though nobody asked for it
