"""The chapter on a comparison, from JSON that may be anybody's."""

from __future__ import annotations

import html
from typing import Any

from dpaa.comparison import Comparison
from dpaa.report.lenient import lenient
from dpaa.report.parts import Section
from dpaa.report.sections import comparison


def content(**parts: Any) -> dict[str, Any]:
    return {"kind": "comparison", "baseline": "old", "k": 5, "entries": [{"name": "old"}, {"name": "new"}], **parts}


def delta(metric: str, before: float, after: float, interval: list[float] | None, verdict: str) -> dict[str, Any]:
    return {
        "entry": "new", "metric": metric, "baseline": before, "value": after, "delta": after - before,
        "relative": (after - before) / before, "interval": interval, "p_holm": 0.01, "verdict": verdict,
    }  # fmt: skip


def chapter(found: dict[str, Any]) -> Section:
    return comparison.section("c", lenient(Comparison, found))


def words(found: dict[str, Any]) -> str:
    return html.unescape(" ".join(chapter(found).content.split()))


def test_a_base_near_zero_has_no_percentage() -> None:
    found = content(
        deltas=[
            delta("recall@5/niche", 0.0001, 0.0618, [0.05, 0.07], "better"),
            delta("popularity_lift@5", -0.2, -0.1, [0.05, 0.15], "higher"),
        ]
    )
    (figure,) = chapter(found).figures
    assert "61700" not in words(found) + figure.description
    assert "Not drawn, since old's value is near 0: recall@5/niche of new (+0.0617)" in words(found)
    assert "popularity_lift@5: +50.0 % (+25.0 % to +75.0 %)" in figure.description  # higher is to the right
    assert "+50.0 %" in words(found)


def test_no_harm_and_worse_are_one_sentence() -> None:
    line = {"entry": "new", "metric": "recall@5/popular", "margin": 0.05, "baseline": 0.2, "value": 0.195}
    worse = delta("recall@5/popular", 0.2, 0.195, [-0.007, -0.003], "worse")
    said = words(content(deltas=[worse], no_harm=[{**line, "verdict": "shown"}]))
    assert "The loss on popular items is small: new loses more than chance explains, but less than 5% of" in said
    assert "no harm" not in said.lower()
    alone = words(content(deltas=[], no_harm=[{**line, "verdict": "shown"}]))
    assert "No harm to popular items" in alone


def test_the_page_says_where_intervals_come_from() -> None:
    said = words(content(confidence=0.95, design="from Student's t for users crossed with runs"))
    assert "intervals and p-values come from Student's t" in said
    assert "drawn again" not in words(content(resamples=2000))


def test_both_lists_of_a_user_are_shown() -> None:
    places = {"baseline_list": [{"item_id": "tea"}], "entry_list": [{"item_id": "coffee", "hit": True}]}
    said = words(content(examples=[{"entry": "new", "user_id": 7, "metric": "recall@5", **places}]))
    assert "tea" in said
    assert "coffee" in said
