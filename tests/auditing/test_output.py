"""An audit as it is told: plain sentences, JSON that keeps to its schema, metrics for a collector."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import polars as pl
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as older_families

import dpaa
from dpaa._text import json_text
from dpaa.auditing import SCHEMA_VERSION, audit, audit_schema, readable_times
from dpaa.auditing.checks import LIST_NUMBERS, LOG_NUMBERS
from dpaa.data.dataset import Dataset
from tests.auditing.examples import LISTS, LOG, NEW, OLD, log
from tests.command import dpaa_ok, run_dpaa


def test_public_name_and_words() -> None:
    found = dpaa.audit(LOG, LISTS, fail_if=["log_head_share>0.3", "log_gini > 0.9", "coverage@3<=80%"])
    assert isinstance(found, dpaa.Audit)
    assert [check.check.name for check in found.failed] == ["log_head_share", "coverage@3"]
    assert set(found.numbers) == {*LOG_NUMBERS, *(f"{name}@3" for name in LIST_NUMBERS)}
    assert set(dpaa.audit(LOG).numbers) == set(LOG_NUMBERS)
    words = found.in_words()
    assert words[0] == "5 users, 5 items, 10 interactions."
    assert words[1].startswith("The most popular fifth of the items (1) has 40.0 % of the interactions")
    assert any("the list is 58 % more popular than the history" in sentence for sentence in words)
    assert not any("nan" in sentence for sentence in words)


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ([1700000000, 1700000001], ["2023-11-14 22:13:20", "2023-11-14 22:13:21"]),
        ([1700006400000000], ["2023-11-15"]),
        ([1700006400000000000, 1700000000000000000], ["2023-11-15 00:00:00", "2023-11-14 22:13:20"]),
        (["2024-05-01T00:00:00+00:00", "2024-05-02T00:00:00+00:00"], ["2024-05-01", "2024-05-02"]),
        (["2024-05-01T00:00:00+00:00", "2024-05-02T10:30:00+00:00"], ["2024-05-01 00:00:00", "2024-05-02 10:30:00"]),
        ([20240131, 20240201], ["20240131", "20240201"]),
        ([3, 1700000000], ["3", "1700000000"]),
        ([], []),
    ],
)
def test_times_for_people(times: list[str | float], said: list[str]) -> None:
    """Seconds, milli-, micro- and nanoseconds since 1970 are dates; other numbers stay what they are."""
    assert readable_times(times) == said


def test_the_log_in_words() -> None:
    said = audit(LOG, periods=2).log.sentences()
    assert "Half of the interactions are on 2 items (40.0 % of them), 80 % on 3 (60.0 %)" in said[2]
    assert said[3].startswith("Gini coefficient 0.320:")
    assert said[4].startswith("3 items have a single interaction (60.0 %)")
    assert said[-2].startswith("The median user has 2 items in the history (a tenth of the users at most 1, a tenth")
    assert "the concentration shrinks: from the first to the last of 2 periods the most popular fifth goes" in said[-1]
    assert "from 60.0 % to 40.0 % of the interactions, niche items from 20.0 % to 20.0 %" in said[-1]


def test_what_is_not_there_is_not_told() -> None:
    log = replace(audit(LOG.drop("timestamp")).log, items_once=0, log_head_share=0.00042)
    said = " ".join(log.sentences())
    assert "(1) has 0.042 % of the interactions" in said
    for part in ("single interaction", "not counted above", "Over time"):
        assert part not in said
    more = replace(log, items_without=1).sentences()
    assert "1 more item is known but has no interaction here and is not counted above." in more


@pytest.mark.parametrize(
    ("lift", "verdict"),
    [
        (0.04, "the list is about as popular as the history"),
        (-0.3, "the list is 30 % less popular than the history"),
        (12.345, "the list is 1,234 % more popular than the history"),
    ],
)
def test_lists_in_words(lift: float, verdict: str) -> None:
    found = audit(LOG, LISTS)
    assert found.recommendations is not None
    said = replace(found.recommendations, popularity_lift=lift).sentences(found.log)
    assert said[1].startswith(f"For the average user {verdict}: a recommended item has 2.7 interactions on average")
    assert "has 40.0 % of the interactions and 33.3 % of the recommendations" in said[3]


def test_every_number_with_a_value_is_a_gauge() -> None:
    found = audit(log(NEW), log(OLD).select("user_id", "item_id"), against=log(OLD))
    text = found.openmetrics()
    for families in (text_string_to_metric_families(text), older_families(text)):
        samples = [sample for family in families for sample in family.samples]
        k = str(found.recommendations.k) if found.recommendations else ""
        told = {f"{one.name}@{one.labels['k']}" if "k" in one.labels else one.name: one.value for one in samples}
        expected = {f"dpaa_audit_{name}": value for name, value in found.numbers.items() if value == value}
        assert told == pytest.approx(expected)
        assert {one.labels.get("k") for one in samples} == {None, k}


def test_odd_text_is_escaped() -> None:
    text = replace(audit(LOG), source='a "b"\\\nc').openmetrics()
    family = next(iter(text_string_to_metric_families(text)))
    assert family.samples[0].labels == {"source": 'a "b"\\\nc'}


def test_the_command_writes_it(tmp_path: Path) -> None:
    log(NEW).write_csv(tmp_path / "today.csv")
    log(OLD).write_csv(tmp_path / "yesterday.csv")
    file = tmp_path / "dpaa.prom"
    call = ("audit", tmp_path / "today.csv", "--against", tmp_path / "yesterday.csv", "--metrics-out", file)
    said = dpaa_ok(*call)
    assert "Against log" in said.out
    assert file.read_text().endswith("# EOF\n")
    assert run_dpaa(*call, "--fail-if", "drift_distance>0").code == 1  # written again, and the check says no
    assert run_dpaa("audit", tmp_path / "today.csv", "--metrics-out", tmp_path / "x.pdf").code == 2
    assert '"urn:dpaa:audit:1"' in dpaa_ok("audit", "--json-schema").out


FROZEN = {1: "d949d703c3ac7385"}


def requirements(part: Any, place: str = "") -> list[str]:
    """Every required key and every type, with its place."""
    if isinstance(part, list):
        return [line for number, one in enumerate(part) for line in requirements(one, f"{place}/{number}")]
    if not isinstance(part, dict):
        return []
    said = [
        f"{place} {word} {json.dumps(part[word])}" for word in ("required", "type", "const", "enum") if word in part
    ]
    return said + [
        line for key, one in part.items() if key != "required" for line in requirements(one, f"{place}/{key}")
    ]


def validated(found: Any) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(json_text(found.as_json()))
    jsonschema.Draft202012Validator(audit_schema()).validate(content)
    return content


def test_the_schema_is_one_and_frozen() -> None:
    jsonschema.Draft202012Validator.check_schema(audit_schema())
    digest = hashlib.sha256("\n".join(requirements(audit_schema())).encode()).hexdigest()[:16]
    assert digest == FROZEN[SCHEMA_VERSION], "raise SCHEMA_VERSION, or add keys without changing those that are there"


def test_every_kind_of_audit_keeps_to_it(small_world: Dataset) -> None:
    recs = pl.DataFrame({"user_id": ["u1", "u1", "u2"], "item_id": ["a", "zz", "f"], "rank": [1, 2, 1]})
    for found in (
        audit(small_world),
        audit(log(NEW).drop("timestamp")),
        audit(log(NEW), recs, k=2, fail_if=["log_gini>0.1", "log_head_share_trend>9"], against=log(OLD)),
    ):
        content = validated(found)
        assert set(content) == set(audit_schema()["properties"])
        assert content["schema"] == SCHEMA_VERSION
