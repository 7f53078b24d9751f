"""The exposition as a collector reads it."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as older_families

from dpaa.auditing.audit import audit
from dpaa.auditing.openmetrics import exposition
from dpaa.errors import InputError
from tests.auditing.test_drift import NEW, OLD, log
from tests.command import dpaa_ok, run_dpaa


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
    text = exposition({"log_gini": 0.5, "log_users": float("nan")}, {}, {"source": 'a "b"\\\nc'})
    (family,) = text_string_to_metric_families(text)
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


def test_a_file_for_metrics_has_an_ending_of_theirs() -> None:
    from dpaa.auditing.openmetrics import check_metrics_file

    with pytest.raises(InputError, match=r"a metrics file is written to .prom or .txt or .om"):
        check_metrics_file(Path("metrics.json"))
