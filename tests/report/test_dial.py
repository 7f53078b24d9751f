"""The curve of the popularity dial as a figure of its own and on the page."""

from __future__ import annotations

import html
import json
from dataclasses import replace
from math import nan
from pathlib import Path

import pytest

from dpaa.data.dataset import Dataset, read_dataset
from dpaa.evaluation.dial_curve import DialCurve, DialPoint, Objective
from dpaa.evaluation.exposure import ValidationExposure
from dpaa.report.dial_figure import dial_figure
from dpaa.report.page import write_page
from dpaa.runs.fit import evaluate, fit
from dpaa.runs.folder import RunFolder
from dpaa.runs.model import Model

pytest.importorskip("altair")

POINTS = tuple(
    DialPoint(kappa, 0.3 - abs(kappa + 1) / 50, 0.2, 0.1, 10 + kappa, 0.5) for kappa in (-2.0, -1.0, 0.0, 4.0)
)
CURVE = DialCurve(POINTS, Objective("ndcg"), 10, 5, ValidationExposure(True, True, 0.9), -1.0, 4.0)


def test_four_panels_mark_the_choice() -> None:
    drawn = dial_figure(CURVE, "lightgcn").to_dict()
    text = json.dumps(drawn, ensure_ascii=False)
    for title in ("accuracy: NDCG@10", "niche items: recall@10", "popularity: ARP@10", "coverage@10"):
        assert title in text
    assert "dotted: in force (κ = 4); best for ndcg: κ = -1" in text
    assert "what is chosen on it favours popularity" in text
    marks = [rows for rows in drawn["datasets"].values() if "mark" in rows[0]]
    assert marks == [[{"kappa": 0.0, "mark": "method"}, {"kappa": 4.0, "mark": "in force"}]]


def test_without_niche_items_that_panel_is_empty_and_the_others_are_not() -> None:
    points = tuple(replace(point, niche_recall=nan) for point in POINTS)
    drawn = dial_figure(replace(CURVE, points=points), "lightgcn").to_dict()
    lengths = sorted(len(rows) for rows in drawn["datasets"].values())
    assert lengths[-1] == len(POINTS)
    assert "NaN" not in json.dumps(drawn)


@pytest.fixture(scope="module")
def shown(small_world: Dataset, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Model]:
    """A page of a run that was evaluated with the dial turned."""
    folder = tmp_path_factory.mktemp("page")
    small_world.write(folder / "data")
    data = read_dataset(folder / "data")
    model = fit(data, "ease")
    model.save(folder / "run")
    RunFolder(folder / "run").write_evaluation(evaluate(model, data, popularity_dial=-1.0))
    write_page([folder / "run"], folder / "page.html")
    return folder / "page.html", model


def test_the_page_draws_the_stored_curve_and_says_what_it_means(shown: tuple[Path, Model]) -> None:
    page, model = shown[0].read_text(encoding="utf-8"), shown[1]
    assert model.dial_curve is not None
    assert "turning the popularity dial" in page
    assert "The dotted line marks the setting in force, κ = 0." in page
    assert "0 (in force)" in page
    assert f"{model.dial_curve.suggested:g} (suggested)" in page
    said = html.unescape(page).replace("<code>", "`").replace("</code>", "`")
    assert model.dial_curve.in_words().removeprefix("popularity dial") in said


def test_the_page_names_the_setting_a_run_was_evaluated_with(shown: tuple[Path, Model]) -> None:
    page = shown[0].read_text(encoding="utf-8")
    assert "run (dial at -1)" in page
    assert "--popularity-dial -1" in page
