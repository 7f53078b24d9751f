"""An audit as it is told: plain sentences, JSON that keeps to its schema, metrics for a collector."""

from __future__ import annotations

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as older_families

import dpaa
from dpaa.auditing import audit
from dpaa.auditing._checks import LIST_NUMBERS, LOG_NUMBERS
from tests.auditing.examples import LISTS, LOG, NEW, OLD, log


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
