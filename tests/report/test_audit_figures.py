from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from dpaa.auditing import audit
from dpaa.report.audit_figures import lorenz_curve

pytest.importorskip("altair")


def drawn(log: dict[str, list[Any]], recs: dict[str, list[Any]] | None = None) -> tuple[dict[str, Any], str]:
    """Points by the name of their curve, and all text."""
    found = audit(pl.DataFrame(log), None if recs is None else pl.DataFrame(recs))
    chart = lorenz_curve(found).to_dict()
    curves: dict[str, Any] = {}
    for row in next(iter(chart["datasets"].values())):
        curves.setdefault(row["curve"], []).append((row["items"], row["share"]))
    return curves, json.dumps(chart)


def test_where_all_items_are_alike_the_curve_is_the_diagonal() -> None:
    curves, _ = drawn({"user_id": [1, 2, 3, 4], "item_id": [1, 2, 3, 4]})
    assert list(curves) == ["all items alike", "interactions (Gini 0.00)"]
    for points in curves.values():
        assert [y for _, y in points] == pytest.approx([x for x, _ in points])


def test_a_log_on_few_items_bends_and_lists_have_a_curve_of_their_own() -> None:
    log = {"user_id": [*range(6), 6, 7, 8, 9], "item_id": [0] * 6 + [1, 2, 3, 4]}
    recs = {"user_id": [0, 1], "item_id": [1, 2], "rank": [1, 1]}
    curves, text = drawn(log, recs)
    assert "the top fifth of the items has 60% of the interactions" in text
    # Σ (2j − 6) c_j / (5 · 10), c = 1, 1, 1, 1, 6
    interactions = dict(curves["interactions (Gini 0.40)"])
    assert interactions[0.8] == pytest.approx(0.4)
    (name,) = [name for name in curves if name.startswith("recommendations")]
    assert curves[name][-1] == (1.0, 1.0)
