"""One name, one meaning; a wrong name is refused with the right one."""

from __future__ import annotations

from typing import Any

import pytest

from dpaa.auditing.audit import audit
from dpaa.auditing.names import LIST_NUMBERS, LOG_NUMBERS, check_name, full_name
from dpaa.errors import InputError
from dpaa.evaluation.metrics import METRICS
from tests.auditing.examples import LISTS, LOG, comparable


def test_no_name_of_the_log_is_one_of_lists() -> None:
    """Not in the numbers, not in the tables beside them, not among the metrics of `evaluate`."""
    found = comparable(audit(LOG, LISTS, periods=2))

    def keys(content: Any) -> set[str]:
        if isinstance(content, dict):
            return set(content) | {key for value in content.values() for key in keys(value)}
        return {key for value in content for key in keys(value)} if isinstance(content, list) else set()

    of_the_log = {name for name in found["numbers"] if name.startswith("log_")} | keys(found["log"])
    of_lists = {name for name in found["numbers"] if "@" in name}
    assert of_the_log | of_lists >= set(found["numbers"])
    assert {name.partition("@")[0] for name in of_lists} == set(LIST_NUMBERS)
    assert not of_the_log & set(LIST_NUMBERS)
    assert not of_the_log & set(METRICS)
    assert of_lists <= set(found["recommendations"])


@pytest.mark.parametrize("with_recs", [True, False])
@pytest.mark.parametrize("name", ["head_share", "gini"])
def test_a_name_that_could_be_two_is_refused_with_both(name: str, with_recs: bool) -> None:
    with pytest.raises(InputError, match=rf"'{name}' could be two numbers: write log_{name} .* or {name}@K .*K is the"):
        audit(LOG, LISTS if with_recs else None, fail_if=[f"{name}>0.8"])
    if with_recs:
        with pytest.raises(InputError, match=rf"write log_{name} for that of the log or {name}@2 for that of the rec"):
            audit(LOG, LISTS, k=2, fail_if=[f"{name}>0.8"])


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("items_for_80", "is called log_items_for_80; write that"),
        ("head_share_trend", "is called log_head_share_trend; write that"),
        ("coverage", r"is called coverage@K; write that \(K is the length of the lists\)"),
        ("niche_share", "is called aplt@K"),
        ("niche_share_history", "is called aplt_history@K"),
        ("exposure_head_share", "is called head_share@K"),
        ("exposure_gini@20", "is called gini@K"),
        (
            "headshare",
            r"there is no number 'headshare'; did you mean head_share@K or log_head_share\? there are log_users,",
        ),
        ("log_head_share@20", "did you mean log_head_share"),
        ("__import__('os')", "there is no number"),
    ],
)
def test_a_name_that_is_none_any_more_is_refused_with_the_right_one(name: str, says: str) -> None:
    for recs in (None, LISTS):
        with pytest.raises(InputError, match=says):
            audit(LOG, recs, fail_if=[f"{name}>0.8"])


@pytest.mark.parametrize("k", [None, 2])
def test_a_length_that_is_not_the_lists_is_refused_with_theirs(k: int | None) -> None:
    right = k or 3
    assert audit(LOG, LISTS, k=k, fail_if=[f"head_share@{right}>0.99"]).failed == []
    for wrong in ("20", "", "x", "03"):
        with pytest.raises(InputError, match=rf"the lists have {right} places; write head_share@{right}"):
            audit(LOG, LISTS, k=k, fail_if=[f"head_share@{wrong}>0.8"])


def test_every_number_answers_to_its_own_name() -> None:
    for name in audit(LOG, LISTS).numbers:
        check_name(name, with_recs=True)
        check_name(name, with_recs=True, k=3)
    assert {full_name(name, 3) for name in (*LOG_NUMBERS, *LIST_NUMBERS)} == set(audit(LOG, LISTS).numbers)


def test_numbers_of_lists_need_lists() -> None:
    for name in LIST_NUMBERS:
        with pytest.raises(InputError, match="is about recommendations; name their file with --recs"):
            check_name(f"{name}@20", with_recs=False)
    for name in LOG_NUMBERS:
        check_name(name, with_recs=False)
