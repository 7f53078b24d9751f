"""An audit as it is told: plain sentences, JSON that keeps to its schema, metrics for a collector."""

from __future__ import annotations

import json

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as older_families

import dpaa
from dpaa._text import json_text
from dpaa.auditing import audit, readable_times
from dpaa.auditing.checks import LIST_NUMBERS, LOG_NUMBERS
from dpaa.data.dataset import Dataset
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


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ([1700000000, 1700000001], ["2023-11-14 22:13:20", "2023-11-14 22:13:21"]),
        ([1700006400000, 1700000000000], ["2023-11-15", "2023-11-14 22:13:20"]),
        (["2024-05-01T00:00:00+00:00", "2024-05-02T00:00:00+00:00"], ["2024-05-01", "2024-05-02"]),
        (["2024-05-01T00:00:00+00:00", "2024-05-02T10:30:00+00:00"], ["2024-05-01", "2024-05-02 10:30:00"]),
        ([20240131, 20240201], ["20240131", "20240201"]),
        ([3, 1700000000], ["3", "1700000000"]),
        ([], []),
    ],
)
def test_times_for_people(times: list[str | float], said: list[str]) -> None:
    """Seconds and milliseconds since 1970 are dates; other numbers stay what they are."""
    assert readable_times(times) == said


def test_the_log_in_words() -> None:
    said = audit(LOG, periods=2).log.sentences()
    assert "80% of the interactions are on 3 items (60.0%)" in said[2]
    assert said[3].startswith("The median user has 2 items in the history")
    assert "the most popular fifth goes from 60.0% to 40.0%" in said[-1]
    assert len(audit(LOG.drop("timestamp")).log.sentences()) == len(said) - 1


def test_every_number_with_a_value_is_a_gauge() -> None:
    found = audit(log(NEW), log(OLD).select("user_id", "item_id"), against=log(OLD))
    text = found.openmetrics()
    for families in (text_string_to_metric_families(text), older_families(text)):
        samples = [sample for family in families for sample in family.samples]
        told = {f"{one.name}@{one.labels['k']}" if "k" in one.labels else one.name: one.value for one in samples}
        expected = {f"dpaa_audit_{name}": value for name, value in found.numbers.items() if value == value}
        assert told == pytest.approx(expected)


def test_json_holds_what_the_page_needs(small_world: Dataset) -> None:
    for found in (audit(small_world), audit(LOG, LISTS, fail_if=["log_gini>0.1"], against=LOG)):
        content = json.loads(json_text(found.as_json()))
        assert content["kind"] == "audit"
        assert set(content["numbers"]) == set(content["meanings"])
        assert {"log_gini", "deciles", "lorenz", "tastes", "periods"} <= set(content["log"])
        if found.recommendations:
            assert {"deciles", "lorenz", "tastes", "winners", "losers"} <= set(content["recommendations"])
            assert content["checks"][0]["failed"]
