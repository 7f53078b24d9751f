"""`--fail-if` and the names of numbers: what is parsed, what is refused, what is said."""

from __future__ import annotations

import math

import pytest

from dpaa.auditing import Check


@pytest.mark.parametrize(
    ("text", "check"),
    [
        ("head_share>0.8", Check("head_share", ">", 0.8)),
        (" gini  <=  -1.5e-3 ", Check("gini", "<=", -0.0015)),
        ("gini!=.5", Check("gini", "!=", 0.5)),
        ("head_share >= 80%", Check("head_share", ">=", 0.8)),
    ],
)
def test_parsed(text: str, check: Check) -> None:
    assert Check.parse(text) == check


@pytest.mark.parametrize(
    ("text", "value", "failed", "sentence"),
    [
        ("gini>0.8", 0.85, True, "gini is 0.85, which is above 0.8"),
        ("gini>0.8", 0.8, False, "gini is 0.8, which is not above 0.8"),
        ("gini<=0.8", 0.9, False, "gini is 0.9, which is not at most 0.8"),
        ("gini>0.8", math.nan, True, "gini has no value here, so 'gini>0.8' cannot be ruled out"),
    ],
)
def test_sentences(text: str, value: float, failed: bool, sentence: str) -> None:
    found = Check.parse(text).apply({"gini": value})
    assert (found.failed, found.sentence) == (failed, sentence)
