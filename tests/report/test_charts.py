"""What is drawn: the numbers in the charts, their files, and their SVG on the page."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaa.report import line, save
from dpaa.report._charts import POINTS, Dot, popularity_line, scatter
from dpaa.report._html import inline_svg
from tests.report.reader import Reader

pytest.importorskip("altair")
BEGINS = {"png": b"\x89PNG", "svg": b"<svg", "pdf": b"%PDF", "html": b"<!DOCTYPE html>", "json": b"{"}


def rows_of(chart: Any, *columns: str) -> list[tuple[Any, ...]]:
    """What is drawn: rows of the longest table that has these columns."""
    tables = [rows for rows in chart.to_dict()["datasets"].values() if rows and set(columns) <= set(rows[0])]
    return [tuple(row[column] for column in columns) for row in max(tables, key=len)]


def test_popularity_falls_from_the_first_item_to_the_last_used_one() -> None:
    counts = np.array([1, 4, 0, 2, 1])
    drawn = popularity_line("all", counts, 0)
    assert (list(drawn.x), list(drawn.y)) == ([1, 2, 3, 4], [4, 2, 1, 1])
    assert list(popularity_line("niche", counts, 0, first=3).x) == [3, 4]
    assert list(popularity_line("nothing", np.zeros(3), 0).x) == []
    many = {str(seed): np.random.default_rng(seed).zipf(1.5, 9_000) - 1 for seed in range(10)}
    rows = rows_of(line([popularity_line(name, each, 0) for name, each in many.items()], "item", "pairs"), "name", "y")
    assert len(rows) <= len(many) * POINTS
    assert {name for name, _ in rows} == set(many)


# ---------------------------------------------------------------------- files and SVG


@pytest.mark.parametrize("ending", BEGINS)
def test_every_format(tmp_path: Path, ending: str) -> None:
    file = save(
        line([popularity_line("a", np.array([3, 2, 1]), 0)], "item", "pairs"),
        tmp_path / "new folder" / f"figure.{ending}",
    )
    content = file.read_bytes()
    assert content.lstrip().startswith(BEGINS[ending])
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    assert b"cdn.jsdelivr" not in content or ending == "json"


def test_text_of_a_chart_stays_text_and_is_a_hint_of_its_mark() -> None:
    hostile = "</svg><b onclick=a>&"
    dots = [Dot(hostile, 0, 1.0, 1.0, hostile), Dot("other", 1, 2.0, 2.0, "other")]
    page = Reader(str(inline_svg(scatter(dots, "x", "y"), "one", '"<i>')))
    (svg,) = page.named("svg")
    assert (svg.attributes["aria-label"], svg.attributes["role"]) == ('"<i>', "img")
    assert not page.named("b") + page.named("i")
    assert {tag.attributes["data-tip"] for tag in page.tags if "data-tip" in tag.attributes} == {hostile, "other"}
    assert hostile in svg.text
