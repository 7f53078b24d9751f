"""`--fail-if` and the names of numbers: what is parsed, what is refused, what is said."""

from __future__ import annotations

import math

import pytest

from dpaa.auditing import Check, audit
from dpaa.auditing.checks import LIST_NUMBERS, check_name
from dpaa.errors import InputError
from tests.auditing.examples import LISTS, LOG


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


@pytest.mark.parametrize("text", ["", "gini", "gini=0.8", "0.8<gini", "gini>a", "gini>٣", "gini>1 or 1", "gini>nan"])
def test_refused(text: str) -> None:
    with pytest.raises(InputError, match="--fail-if"):
        Check.parse(text)


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


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("head_share", "there is no number 'head_share'; did you mean log_head_share or head_share@K"),
        ("items_for_80", "did you mean log_items_for_80"),
        ("coverage", "did you mean coverage@K"),
        ("headshare", r"did you mean head_share@K or log_head_share\?"),
        ("log_head_share@20", "did you mean log_head_share"),
        ("__import__('os')", "there are log_users"),
    ],
)
def test_a_wrong_name_is_refused_with_the_right_one(name: str, says: str) -> None:
    for recs in (None, LISTS):
        with pytest.raises(InputError, match=says):
            audit(LOG, recs, fail_if=[f"{name}>0.8"])


@pytest.mark.parametrize("k", [None, 2])
def test_a_length_that_is_not_the_lists_is_refused_with_theirs(k: int | None) -> None:
    right = k or 3
    assert audit(LOG, LISTS, k=k, fail_if=[f"head_share@{right}>0.99"]).failed == []
    for wrong in ("20", "03"):
        with pytest.raises(InputError, match=rf"no number 'head_share@{wrong}'; .* head_share@{right}"):
            audit(LOG, LISTS, k=k, fail_if=[f"head_share@{wrong}>0.8"])


def test_numbers_of_lists_need_lists() -> None:
    for name in LIST_NUMBERS:
        with pytest.raises(InputError, match="is measured only with --recs"):
            check_name(f"{name}@20", with_recs=False)
    for name in audit(LOG, LISTS).numbers:
        check_name(name, with_recs=True, k=3)
