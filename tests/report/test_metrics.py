from __future__ import annotations

import pytest

from dpaa.evaluation.metrics import explain
from dpaa.report.sections.metrics import best_of


@pytest.mark.parametrize(
    ("metric", "values", "best"),
    [
        ("recall@20", {"a": 0.1, "b": 0.2}, {"b"}),
        ("arp@20", {"a": 10.0, "b": 20.0}, {"a"}),
        ("popularity_lift@20", {"a": -0.3, "b": 0.2}, {"b"}),
        ("recall@20/niche", {"a": 0.10001, "b": 0.10002, "c": 0.05}, {"a", "b"}),
        ("recall@20", {"a": 0.1, "b": 0.1}, set()),
        ("recall@20", {"a": 0.1}, set()),
        ("unheard-of@20", {"a": 0.1, "b": 0.2}, set()),
    ],
)
def test_best(metric: str, values: dict[str, float], best: set[str]) -> None:
    assert best_of(metric, values) == best


def test_groups_are_named() -> None:
    found = explain("recall@20/niche")
    assert found is not None
    assert "niche items only" in found.words
    assert explain("no-such-thing") is None
