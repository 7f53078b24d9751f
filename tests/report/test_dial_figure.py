from __future__ import annotations

import json
from dataclasses import replace
from math import nan

import pytest

from dpaa.evaluation.dial_curve import DialCurve, DialPoint, Objective
from dpaa.evaluation.offpolicy import ValidationExposure
from dpaa.report.dial_figure import dial_figure

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
