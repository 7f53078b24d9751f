"""JSON of any origin: whatever it holds, sections can be made of it, and damaged parts are empty."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaa.report import Figure, Section
from dpaa.report._documents import audit, comparison, frontier
from dpaa.report._partial import Partial, is_number

SCALARS = st.none() | st.booleans() | st.integers(-(2**64), 2**64) | st.floats(allow_nan=False) | st.text(max_size=5)
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner))


def test_numbers() -> None:
    assert [is_number(value) for value in (1, 1.5, True, math.nan, math.inf, "1", None)] == [True, True, *[False] * 5]


def test_what_is_whole_is_kept_and_what_is_not_is_empty() -> None:
    found = Partial({"a": "x\x1b", "k": "many", "n": [1, "b"], "lists": [3, {"b": 2}], "upd@20": 0.5, "big": 10**400})
    assert found.text("a") == "x\\x1b"
    assert (found.whole("k"), found.text("gone"), found.part("a").content) == (None, "", {})
    assert found.texts("n") == ["1", "b"]
    assert [part.number("b") for part in found.parts("lists")] == [2.0]
    assert found.number("upd") == 0.5, "names of lists' numbers may end in @k"
    assert math.isnan(found.number("big"))
    assert found.shares("n") == found.items("a") == []


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(st.sampled_from(["a", "b"]), JSON) | JSON)
def test_every_part_of_anything_has_its_type(content: Any) -> None:
    found = Partial(content)
    assert isinstance(found.number("a"), float)
    assert isinstance(found.text("a"), str)
    assert all(isinstance(line, str) for line in found.texts("a"))
    assert all(0 <= share <= 1 for share in found.shares("a"))
    assert isinstance(found.part("a").parts("b"), list)


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
POINT = {"name": "a", "model": "m", "plain": True, "on_frontier": True, "accuracy": 0.2, "accuracy_change": 0.1,
         "accuracy_change_low": 0.0, "accuracy_change_high": 0.2, "metrics": {"coverage@5": 0.5}}  # fmt: skip
TRADE_OFF: dict[str, Any] = {
    "k": 5, "users": 3, "goals": [{"name": "coverage", "metric": "coverage@5", "better": "high"}], "notes": ["a note"],
    "estimate": {"in_words": "plain"}, "exposure": {"in_words": "random"}, "base": POINT, "chosen": POINT,
    "confirmation": {"change": {"estimate": 0.1}}, "headline": "more", "sentences": ["b instead of a"],
    "points": [POINT, POINT | {"name": "b"}],
}  # fmt: skip


def damaged(content: Any) -> Iterator[Any]:
    """The same with one part, at any depth, of every other kind or gone."""
    yield from (None, True, -1e300, "<b>\u202e", [7, "x"], {"x": []})
    if isinstance(content, dict):
        yield from ({name: part for name, part in content.items() if name != gone} for gone in content)
        yield from (content | {name: other} for name, part in content.items() for other in damaged(part))
    if isinstance(content, list) and content:
        yield from ([other, *content[1:]] for other in damaged(content[0]))


@pytest.mark.parametrize(("section", "whole"), [("compare", COMPARED), ("audit", AUDITED), ("debias", TRADE_OFF)])
def test_sections_of_damaged_files(section: str, whole: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Figure, "drawn", lambda _: {})  # the charts are drawn in other tests

    def made(content: Any) -> Section:
        found = Partial(content)
        return frontier(found) if section == "debias" else {"compare": comparison, "audit": audit}[section]("x", found)

    for content in damaged(whole):
        text = made(content).content
        assert text
        assert "<b>" not in text
        assert "\u202e" not in text
    assert made(whole).figures
