"""JSON of a stranger: whatever stands in it, the result is whole, and damaged parts of it are empty."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaa.comparison import Comparison
from dpaa.report.lenient import is_number, lenient
from dpaa.report.parts import Figure
from dpaa.report.records import AuditFile, Manifest, Protocol
from dpaa.report.sections import audit, comparison

SCALARS = st.none() | st.booleans() | st.integers(-(2**64), 2**64) | st.floats(allow_nan=False) | st.text(max_size=5)
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner))


def test_numbers() -> None:
    assert [is_number(value) for value in (1, 1.5, True, math.nan, math.inf, "1", None)] == [True, True, *[False] * 5]


def test_what_is_whole_is_kept_and_what_is_not_is_empty() -> None:
    found = lenient(Comparison, {"baseline": "a\x1b", "k": "many", "notes": [1, "b"], "confidence": "high",
                                 "deltas": [3, {"entry": "x", "delta": 2, "interval": [1, None], "p_holm": [1]}],
                                 "overlap": {"entry": "x"}})  # fmt: skip
    assert found.baseline == "a\\x1b"
    assert found.notes == ["1", "b"]
    assert math.isnan(found.confidence)
    assert found.overlap == found.entries == []
    (delta,) = found.deltas
    assert (delta.entry, delta.metric, delta.delta) == ("x", "", 2)
    assert math.isnan(delta.baseline)
    assert delta.interval is delta.p_holm is None


def test_names_of_lists_lose_their_k() -> None:
    found = lenient(AuditFile, {"recommendations": {"tastes": [{"taste": "niche", "upd@20": 0.5}]}})
    assert found.recommendations.tastes[0].upd == 0.5


@settings(max_examples=50, deadline=None)
@given(JSON | st.dictionaries(st.sampled_from(["seed", "dial", "auto", "dataset", "k", "users"]), JSON))
def test_a_manifest_of_anything(content: Any) -> None:
    assert isinstance(lenient(Manifest, content).dial.curve, list)
    assert isinstance(lenient(Protocol, content).largest_k, int)


COMPARED: dict[str, Any] = {
    "baseline": "old", "k": 5, "confidence": 0.9, "design": "by chance", "family": "Holm", "notes": ["a note"],
    "dataset": {"name": "shop"}, "protocol": {"split": "test", "overlap": "drop", "users": 3, "k": [5]},
    "entries": [{"name": "new", "sources": ["new.csv"]}],
    "deltas": [{"entry": "new", "metric": "recall@5", "baseline": 0.1, "value": 0.2, "delta": 0.1, "p_holm": 0.2,
                "interval": [0.05, 0.15], "verdict": "better"}],
    "no_harm": [{"entry": "new", "metric": "hit@5", "margin": 0.1, "baseline": 0.1, "value": 0.2, "verdict": "harm"}],
    "overlap": [{"entry": "new", "other": "old", "shared": 2.5, "unchanged": 0.1}],
    "exposure": [{"entry": "new", "gaining": [{"item_id": 1, "group": "niche", "training_count": 3, "baseline": 1.0,
                                               "value": 2.0, "change": 1.0}], "losing": []}],
    "examples": [{"entry": "new", "user_id": "u", "relevant": [1], "history": 3, "shared": 1, "metric": "recall@5",
                  "baseline": 0.0, "value": 1.0, "baseline_list": [{"item_id": 1, "hit": True, "group": "niche"}],
                  "entry_list": [{"item_id": 1, "hit": False, "group": None}]}],
}  # fmt: skip
PERIOD = {"start": 1, "end": 2, "log_head_share": 0.5, "log_niche_share": 0.2, "new_share": 0.1}
SHIFT = {"item_id": "i", "group": "niche", "interactions": 3, "recommendations": 4, "interaction_share": 0.1,
         "recommendation_share": 0.2}  # fmt: skip
AUDITED: dict[str, Any] = {
    "source": "shop", "in_words": ["skewed"], "numbers": {"log_gini": 0.5}, "meanings": {"log_gini": "how"},
    "log": {"log_gini": 0.5, "lorenz": [[0, 0], [1, 1]], "deciles": [0.1] * 10, "periods": [PERIOD, PERIOD],
            "tastes": [{"taste": "niche", "users": 3, "mean": 0.2, "history_median": 4}]},
    "recommendations": {"lorenz": [[0, 0], [1, 1]], "deciles": [0.1] * 10, "winners": [SHIFT], "losers": [SHIFT],
                        "tastes": [{"taste": "niche", "upd@5": 0.3}]},
    "checks": [{"check": "log_gini>0.4", "failed": True, "sentence": "too much"}], "notes": ["a note"],
}  # fmt: skip


def damaged(content: Any) -> Iterator[Any]:
    """The same with one part, at any depth, of every other kind or gone."""
    yield from (None, True, -1e300, "x", [7, "x"], {"x": []})
    if isinstance(content, dict):
        yield from ({name: part for name, part in content.items() if name != gone} for gone in content)
        yield from (content | {name: other} for name, part in content.items() for other in damaged(part))
    if isinstance(content, list) and content:
        yield from ([other, *content[1:]] for other in damaged(content[0]))


def test_chapters_of_damaged_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Figure, "drawn", lambda _: {})  # the charts are drawn in other tests
    for content in damaged(COMPARED):
        assert comparison.section("c", lenient(Comparison, content)).content
    for content in damaged(AUDITED):
        assert audit.section("a", lenient(AuditFile, content)).content
    assert "recall@5" in comparison.section("c", lenient(Comparison, COMPARED)).content
