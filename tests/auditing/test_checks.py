"""`--fail-if`: what is parsed, what is refused, what is said."""

from __future__ import annotations

import math
import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaa.auditing.checks import Check
from dpaa.errors import InputError

COMPARISONS = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}


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
    "text",
    [
        *(
            "",
            "head_share",
            "head_share=0.8",
            "0.8<head_share",
            "head_share>a",
            "head_share>٣",
            "head_share>0.8 or 1",
            "gini>>1",
        ),
        *("gini>nan", "gini>inf", "gini>1;2", "gini > 1 2"),
    ],
)
def test_refused(text: str) -> None:
    with pytest.raises(InputError, match="--fail-if"):
        Check.parse(text)


@pytest.mark.parametrize(
    ("text", "value", "failed", "sentence"),
    [
        ("gini>0.8", 0.85, True, "gini is 0.85, which is above 0.8"),
        ("gini>0.8", 0.8, False, "gini is 0.8, which is not above 0.8"),
        ("gini>=0.8", 0.8, True, "gini is 0.8, which is not below 0.8"),
        ("gini<=0.8", 0.9, False, "gini is 0.9, which is above 0.8"),
        ("gini==0.8", 0.8, True, "gini is 0.8, which is equal to 0.8"),
        ("gini>0.8", 0.8000000001, True, "gini is 0.8000000001, which is above 0.8"),
        ("gini>0.8", math.nan, True, "gini has no value here, so 'gini>0.8' cannot be ruled out"),
    ],
)
def test_sentences(text: str, value: float, failed: bool, sentence: str) -> None:
    found = Check.parse(text).apply({"gini": value})
    assert (found.failed, found.sentence) == (failed, sentence)


finite = st.floats(-1e6, 1e6)


@given(st.sampled_from(sorted(COMPARISONS)), finite, finite)
def test_fails_where_the_comparison_holds(sign: str, value: float, limit: float) -> None:
    check = Check.parse(f"gini {sign} {limit!r}")
    assert check.apply({"gini": value}).failed == COMPARISONS[sign](value, limit)
