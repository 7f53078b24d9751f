"""Paired differences: seed with seed, draw with draw."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from dpaa.reproduction.differences import difference_table, draw_table, in_words, interval, pairs
from dpaa.reproduction.results import RunResult
from dpaa.reproduction.tables import Quantity

RECALL = Quantity("recall@20")


def result(label: str, seed: int, recall: float, data: str = "s=5") -> RunResult:
    return RunResult(data=data, label=label, method=label, seed=seed, settings={}, details={},
                     metrics={"drop": {"recall@20": recall}})  # fmt: skip


def test_the_interval_is_students() -> None:
    values = [0.01, 0.03, 0.02, 0.05]
    mean, low, high = interval(values)
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert (mean, low, high) == pytest.approx((0.0275, expected.low, expected.high))
    assert interval([0.1])[0] == 0.1
    assert math.isnan(interval([0.1])[1])
    assert in_words([]) == "–"
    assert in_words([0.01]) == "+0.0100"
    assert in_words([0.01, 0.0101, 0.0102]).endswith("*")
    assert not in_words([-0.01, 0.02]).endswith("*")


def test_only_what_belongs_together_is_compared() -> None:
    results = [result("lightgcn", 0, 0.1), result("lightgcn", 1, 0.3), result("dpaa", 1, 0.35), result("dpaa", 2, 0.9)]
    assert pairs(results, "dpaa", "lightgcn", "s=5", RECALL) == pytest.approx([0.05])
    assert pairs(results, "dpaa", "lightgcn", "s=6", RECALL) == []


def test_tables_over_seeds_and_over_draws() -> None:
    results = [result(label, seed, 0.1 * (seed + 1) + gain) for label, gain in (("lightgcn", 0.0), ("dpaa", 0.02))
               for seed in range(3)]  # fmt: skip
    (table,) = difference_table("differences", "recall@20", results, {"s = 5": ("s=5", RECALL)})
    assert table.rows[0][0] == "dpaa − lightgcn"
    assert table.rows[0][1][0].text == "+0.0200 [+0.0200, +0.0200] *"
    assert "3 seeds" in table.title
    (drawn,) = draw_table("draws", {0: results[::3], 1: results[1::3]}, [5.0], RECALL)
    assert drawn.rows[0][1][0].text == "+0.0200 [+0.0200, +0.0200] *"
    assert "2 draws" in drawn.title
    assert difference_table("differences", "x", results[:3], {"s = 5": ("s=5", RECALL)}) == []
