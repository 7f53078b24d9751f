"""What is drawn: the numbers in the charts, their files, and their SVG on the page."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaa.report import line, save_figure
from dpaa.report._charts import POINTS, WIDTH, Dot, popularity_line, scatter
from dpaa.report._html import inline_svg
from tests.report.reader import Reader

pytest.importorskip("altair")


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


def test_a_figure_is_two_files(tmp_path: Path) -> None:
    chart = line([popularity_line("a", np.array([3, 2, 1]), 0)], "item", "pairs")
    svg, png = save_figure(chart, tmp_path / "new folder", "figure")
    assert [file.name for file in sorted((tmp_path / "new folder").iterdir())] == [png.name, svg.name]
    assert svg.read_bytes().startswith(b"<svg")
    content = png.read_bytes()
    assert content.startswith(b"\x89PNG")
    assert int.from_bytes(content[16:20]) > 2 * WIDTH, "200 pixels per inch"


def test_text_of_a_chart_stays_text_and_is_a_hint_of_its_mark() -> None:
    hostile = "</svg><b onclick=a>&"
    dots = [Dot(hostile, 0, 1.0, 1.0, hostile), Dot("other", 1, 2.0, 2.0, "other")]
    page = Reader(str(inline_svg(scatter(dots, "x", "y"), "one", '"<i>')))
    (svg,) = page.named("svg")
    assert (svg.attributes["aria-label"], svg.attributes["role"]) == ('"<i>', "img")
    assert not page.named("b") + page.named("i")
    assert {tag.attributes["data-tip"] for tag in page.tags if "data-tip" in tag.attributes} == {hostile, "other"}
    assert hostile in svg.text
