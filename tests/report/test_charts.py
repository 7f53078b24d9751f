from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpaa.report.charts import (
    FrontierDot,
    Interval,
    Line,
    Point,
    _beside,
    concentration,
    curves,
    frontier,
    intervals,
    long_tail,
    scatter,
)
from dpaa.report.theme import PAPER, PHONE, WIDE

pytest.importorskip("altair")
COUNTS = np.array([1, 4, 0, 2, 1])


def rows_of(chart: Any, *columns: str) -> list[tuple[Any, ...]]:
    """What is drawn: rows of the table that has these columns."""
    tables = chart.to_dict()["datasets"].values()
    (found,) = [rows for rows in tables if rows and set(columns) <= set(rows[0])]
    return [tuple(row[column] for column in columns) for row in found]


def test_the_niche_begins_where_the_popular_items_end() -> None:
    found = rows_of(long_tail(COUNTS, PAPER), "group", "rank", "count")
    popular, niche = "popular: 3 items", "niche: 2 items"
    assert found == [(popular, 1, 4.0), (popular, 2, 2.0), (popular, 3, 1.0), (niche, 3, 1.0), (niche, 4, 1.0)]


def test_concentration_adds_up_from_the_most_popular() -> None:
    found = rows_of(concentration(COUNTS, PAPER), "name", "x", "y")
    log = {x: y for name, x, y in found if name == "this log"}
    assert log == pytest.approx({0: 0, 0.2: 0.5, 0.4: 0.75, 0.6: 0.875, 0.8: 1, 1: 1})


def test_what_has_no_value_is_left_out_of_a_line() -> None:
    lines = [Line("one", [1, 2, 3], [0.1, None, 0.3], 0), Line("none", [1], [None], 1)]
    assert rows_of(curves(lines, PAPER, "x", "y"), "name", "x", "y") == [("one", 1.0, 0.1), ("one", 3.0, 0.3)]


def test_lines_beyond_the_palette_are_dashed_and_what_is_measured_against_is_too() -> None:
    n = len(PAPER.palette)
    lines = [Line(str(place), [0, 1], [0, 1], place) for place in (0, n)] + [Line("base", [0, 1], [0, 1], None)]
    encoding = curves(lines, PAPER, "x", "y").to_dict()["layer"][0]["encoding"]
    assert encoding["color"]["scale"]["range"] == [PAPER.colour(0), PAPER.colour(0), PAPER.soft]
    assert encoding["strokeDash"]["scale"]["range"] == [[1, 0], [6, 3], [3, 3]]


@pytest.mark.parametrize(
    ("values", "domain"),
    [((0.1, 0.2), (0.088, 0.212)), ((0.001, 0.2), (0.0, 0.22388)), ((5.0, 5.0), (4.5, 5.5)), ((0.0, 0.0), (0.0, 1.0)),
     ((-1.0, 1.0), (-1.24, 1.24))],
)  # fmt: skip
def test_points_have_room_around_them_but_none_below_zero(
    values: tuple[float, float], domain: tuple[float, float]
) -> None:
    points = [Point(str(place), value, value, place, "") for place, value in enumerate(values)]
    encoding = scatter(points, PAPER, "x", "y").to_dict()["encoding"]
    for axis in ("x", "y"):
        assert encoding[axis]["scale"]["domain"] == pytest.approx(domain)


def test_intervals_keep_the_order_they_come_in_and_grow_with_it() -> None:
    rows = [Interval(label, name, 0, 0.1, 0.0, 0.2, "") for label in ("z", "a") for name in ("new", "best")]
    chart = intervals(rows, WIDE, "change").to_dict()
    encoding = chart["layer"][1]["encoding"]
    assert encoding["y"]["sort"] == ["z", "a"]
    assert encoding["yOffset"]["sort"] == ["new", "best"]
    assert chart["height"] == 60 + 2 * 26 + 20
    assert intervals([*rows, Interval("m", "new", 0, 0, 0, 0, "")], WIDE, "change").to_dict()["height"] == 158


def test_a_legend_of_long_names_takes_more_rows_on_a_phone() -> None:
    lines = [Line(f"a name of some length {place}", [0, 1], [0, 1], place) for place in range(4)]
    heights = [curves(lines, theme, "x", "y").to_dict()["height"] - theme.height for theme in (WIDE, PHONE)]
    assert heights == [40, 80]


@pytest.mark.parametrize(
    ("base", "chosen", "side"),
    [
        (0.5, 0.8, "right"),  # the text ends at the dot: it stands to its left
        (0.5, 0.2, "left"),
        (0.0, 0.8, "left"),
        (1.0, 0.2, "right"),
        (0.9, 0.95, "right"),
        (0.5, None, "left"),
    ],
)
def test_the_baselines_label_stands_beside_its_dot_where_there_is_room(
    base: float, chosen: float | None, side: str
) -> None:
    marks = {0.0: "", 1.0: "", base: "baseline"} | ({} if chosen is None else {chosen: "chosen"})
    dots = [FrontierDot("a", 0, x, 0.5, False, False, mark, "") for x, mark in marks.items()]
    assert _beside(dots)["align"] == side
    (label,) = [
        layer
        for layer in frontier(dots, WIDE, "x", "y").to_dict()["layer"]
        if layer["mark"]["type"] == "text" and "baseline" in str(layer["transform"])
    ]
    assert label["mark"]["align"] == side
    assert label["mark"]["dy"] < 0, "above the axis that the lowest dot stands on"
