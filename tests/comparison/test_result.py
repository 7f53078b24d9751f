"""What a comparison finds, as numbers for JSON and as sentences."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dpaa.comparison.result import Comparison, harm_in_words, relative_change


def test_relative_changes_against_a_base_near_zero() -> None:
    """0.0001 → 0.0618 was told as "+61700 %"; the sign is always that of the difference."""
    assert np.isnan([relative_change(0.0001, 0.0617), relative_change(0.0, 0.1), relative_change(0.0, 0.0)]).all()
    assert relative_change(0.01, 0.1) == pytest.approx(10)
    assert np.isnan(relative_change(0.01, 0.1001))
    assert relative_change(-0.2, 0.1) == pytest.approx(0.5)
    assert relative_change(0.2, -0.1) == pytest.approx(-0.5)
    assert np.isnan([relative_change(float("nan"), 0.1), relative_change(0.1, float("nan"))]).all()


@pytest.mark.parametrize(
    ("verdict", "difference", "said"),
    [
        (
            "shown",
            "worse",
            "the loss on popular items is small: new loses more than chance explains, but less than 5% of",
        ),
        ("shown", "not shown", "no harm to popular items: new loses less than 5% of old's recall there, if anything"),
        ("shown", "not tested", "no harm to popular items: new loses less than 5% of"),
        ("shown", "better", "no harm to popular items: new is better there than old, by more than chance explains"),
        ("harm", "worse", "harm to popular items: new loses more than 5% of"),
        ("harm", "not shown", "harm to popular items, if this is the only question: new loses more than 5% of"),
        ("open", "worse", "no harm to popular items is not shown: new may lose 5% of old's recall there or more"),
        ("open", "not shown", "no harm to popular items is not shown: new may lose 5% of old's recall there or more"),
    ],
)
def test_no_harm_does_not_stand_beside_worse(verdict: str, difference: str, said: str) -> None:
    """One sentence for what the margin and the difference say of the same number."""
    assert harm_in_words("new", "old", 0.05, verdict, difference).startswith(said)


def test_json_survives(found: Comparison) -> None:
    content = json.loads(json.dumps(found.as_json()))
    assert content["kind"] == "comparison"
    assert content["entries"][2]["seeds"] == [0, 1, 2]
    assert content["protocol"]["k"] == [10]
