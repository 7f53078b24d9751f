"""What is drawn: the numbers in the charts, their files, and their SVG on the page."""

from __future__ import annotations

from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest

from dpaa.auditing import audit
from dpaa.data.dataset import Dataset
from dpaa.evaluation.dial_curve import DialCurve, DialPoint
from dpaa.evaluation.offpolicy import ValidationExposure
from dpaa.report import dial_figure, lorenz_curve, popularity_curves, save, trace_figures
from dpaa.report._charts import PALETTE, POINTS, SOFT, Dot, Line, line, popularity_line, scatter
from dpaa.report._html import SVG, cleaned_svg, inline_svg
from dpaa.runs.fit import fit_into, make_method
from dpaa.trace import trace_run
from tests.report.reader import Reader

pytest.importorskip("altair")
BEGINS = {"png": b"\x89PNG", "svg": b"<svg", "pdf": b"%PDF", "html": b"<!DOCTYPE html>", "json": b"{"}
HEAD = f'<svg xmlns="{SVG}">'


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
    rows = rows_of(popularity_curves(many, by="severity"), "name", "y")
    assert len(rows) <= len(many) * POINTS
    assert {name for name, _ in rows} == {f"severity {seed}" for seed in many}


def test_what_has_no_value_is_left_out_and_lines_beyond_the_palette_are_dashed() -> None:
    lines = [Line("one", [1, 2, 3], [0.1, None, 0.3], 0), Line("two", [1], [0.2], 7), Line("base", [0], [0], None)]
    chart = line(lines, "x", "y")
    assert rows_of(chart, "name", "x", "y")[:2] == [("one", 1.0, 0.1), ("one", 3.0, 0.3)]
    encoding = chart.to_dict()["layer"][0]["encoding"]
    assert encoding["color"]["scale"]["range"] == [PALETTE[0], PALETTE[0], SOFT]
    assert encoding["strokeDash"]["scale"]["range"] == [[1, 0], [6, 3], [3, 3]]


# ---------------------------------------------------------------------- figures of commands


def test_lorenz_curves_of_log_and_lists() -> None:
    log = pl.DataFrame({"user_id": [*range(6), 6, 7, 8, 9], "item_id": [0] * 6 + [1, 2, 3, 4]})
    recs = pl.DataFrame({"user_id": [0, 1], "item_id": [1, 2], "rank": [1, 1]})
    drawn = rows_of(lorenz_curve(audit(log, recs)), "name", "x", "y")
    points = {round(x, 6): y for name, x, y in drawn if name == "interactions of the log"}
    assert points[0.2] == pytest.approx(0.6), "the top fifth has six of ten"
    assert {name for name, *_ in drawn} == {"interactions of the log", "recommendations", "if all items were alike"}


def test_the_dial_is_drawn_in_shares_and_what_has_no_value_is_left_out() -> None:
    points = tuple(DialPoint(kappa, 0.3 - kappa / 50, 0.2, nan, 10 + kappa, 0.5) for kappa in (-2.0, 0.0, 4.0))
    curve = DialCurve(points, "ndcg", 10, 5, ValidationExposure(True, True, 0.9), -2.0, 4.0)
    drawn = rows_of(dial_figure(curve, "lightgcn"), "name", "x", "y")
    names = {name for name, *_ in drawn}
    assert names == {"accuracy (NDCG@10)", "items shown to anybody", "mean popularity (ARP)"}
    assert max(y for *_, y in drawn) == 1.0
    whole = replace(curve, points=tuple(replace(point, niche_recall=0.1) for point in points))
    assert len(rows_of(dial_figure(whole, "lightgcn"), "name")) == len(drawn) + len(points)


def test_trace_figures_hold_the_numbers(small_world: Dataset, tmp_path: Path) -> None:
    for name in ("dpaa", "lightgcn"):
        chosen = {"embedding_size": 8, "layers": 3, "epochs": 4, "threads": 1}
        fit_into(tmp_path / name, small_world, make_method(small_world, name, chosen))
    traced = trace_run(tmp_path / "dpaa")
    charts = trace_figures(traced)
    always = ["relative-weights", "inverse-interaction-weights"]
    assert list(charts) == [*always, "pretrained-share"]
    values = [y for (y,) in rows_of(charts["relative-weights"], "y")]
    assert values == pytest.approx([value for layer in traced.weights for value in layer.relative])
    assert len(rows_of(charts["inverse-interaction-weights"], "y")) == 10 * len(traced.premises)
    assert list(trace_figures(trace_run(tmp_path / "lightgcn"))) == always, "its history has no share"


# ---------------------------------------------------------------------- files and SVG


@pytest.mark.parametrize("ending", BEGINS)
def test_every_format(tmp_path: Path, ending: str) -> None:
    file = save(popularity_curves({"a": np.array([3, 2, 1])}), tmp_path / "new folder" / f"figure.{ending}")
    content = file.read_bytes()
    assert content.lstrip().startswith(BEGINS[ending])
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    assert b"cdn.jsdelivr" not in content or ending == "json"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("<script>alert(1)</script><g />", "<g />"),
        ('<image href="http://x" /><a href="x"><path /></a><foreignObject /><g />', "<g />"),
        ('<rect fill="white" /><rect fill="#0072B2" />', '<rect fill="var(--c0)" />'),
        ('<path d="" /><path display="none" /><path d="M1.23456,2" />', '<path d="M1.23,2" />'),
        ('<g id="a" clip-path="url(#b)" />', '<g id="fig-a" clip-path="url(#fig-b)" />'),
        ('<path aria-label="0.5" aria-roledescription="point" style="x" />', '<path data-tip="0.5" />'),
        ('<g aria-label="X-axis" aria-roledescription="axis" role="x" />', "<g />"),
    ],
)
def test_what_draws_is_kept(before: str, after: str) -> None:
    ElementTree.register_namespace("", SVG)
    root = cleaned_svg(f"{HEAD}{before}</svg>", "fig")
    assert ElementTree.tostring(root, encoding="unicode").removeprefix(HEAD).removesuffix("</svg>") == after


def test_text_of_a_chart_stays_text_and_is_a_hint_of_its_mark() -> None:
    hostile = "</svg><b onclick=a>&"
    dots = [Dot(hostile, 0, 1.0, 1.0, hostile), Dot("other", 1, 2.0, 2.0, "other")]
    page = Reader(str(inline_svg(scatter(dots, "x", "y"), "one", '"<i>')))
    (svg,) = page.named("svg")
    assert (svg.attributes["aria-label"], svg.attributes["role"]) == ('"<i>', "img")
    assert not page.named("b") + page.named("i")
    assert {tag.attributes["data-tip"] for tag in page.tags if "data-tip" in tag.attributes} == {hostile, "other"}
    assert hostile in svg.text
