"""`--fail-if` and the names of numbers: what is parsed, what is refused, what is said."""

import math

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as older_families

import dpaa
from dpaa.auditing import Check, audit
from dpaa.auditing._audit import LIST_NUMBERS, LOG_NUMBERS
from tests.auditing.test_measures import LISTS, LOG, NEW, OLD, log


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


# ---------------------------------------------------------------------- an audit as it is told


def test_public_name_and_words() -> None:
    found = dpaa.audit(LOG, LISTS, fail_if=["log_head_share>0.3", "log_gini > 0.9", "coverage@3<=80%"])
    assert isinstance(found, dpaa.Audit)
    assert [check.check.name for check in found.failed] == ["log_head_share", "coverage@3"]
    assert set(found.numbers) == {*LOG_NUMBERS, *(f"{name}@3" for name in LIST_NUMBERS)}
    assert set(dpaa.audit(LOG).numbers) == set(LOG_NUMBERS)
    words = found.in_words()
    assert words[0] == "5 users, 5 items, 10 interactions."
    assert words[1].startswith("The most popular fifth of the items has 40.0% of the interactions")
    assert any("the list is 58% more popular than the history" in sentence for sentence in words)
    assert not any("nan" in sentence for sentence in words)


def test_every_number_with_a_value_is_a_gauge() -> None:
    found = audit(log(NEW), log(OLD).select("user_id", "item_id"), against=log(OLD))
    text = found.openmetrics()
    for families in (text_string_to_metric_families(text), older_families(text)):
        samples = [sample for family in families for sample in family.samples]
        told = {f"{one.name}@{one.labels['k']}" if "k" in one.labels else one.name: one.value for one in samples}
        expected = {f"dpaa_audit_{name}": value for name, value in found.numbers.items() if value == value}
        assert told == pytest.approx(expected)
