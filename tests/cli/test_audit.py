"""`dpaa audit` as a user meets it."""

import json
import shlex
from pathlib import Path

import pytest

from tests.command import dpaa_ok, run_dpaa

README = Path(__file__).parents[2] / "README.md"


@pytest.fixture(scope="module")
def lists(walk: Path) -> Path:
    """Recommendations of the run."""
    dpaa_ok("recommend", walk / "run", "--k", 5, "--out", walk / "audited.parquet")
    return walk / "audited.parquet"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    file = tmp_path / "log.csv"
    file.write_text("user_id,item_id,rating,timestamp\n" + "".join(f"u{n},i{n % 3},{n % 5},{n}\n" for n in range(30)))
    return file


def test_says_in_plain_words_and_tables_what_was_found(walk: Path, lists: Path) -> None:
    shown = dpaa_ok("audit", walk / "data", "--recs", lists).out
    lines = shown.splitlines()
    assert lines[0] == "Audit of the training split of dataset demo"
    assert lines[2].startswith("- The most popular fifth of the items")
    for title in ("share by popularity", "users by the share of popular items", "list against history", "winners"):
        assert title in shown
    assert "over time" not in shown, "the demo has no times"


def test_json_is_one_object_with_the_same_numbers_as_in_python(walk: Path, lists: Path) -> None:
    import dpaa

    found = json.loads(dpaa_ok("audit", walk / "data", "--recs", lists, "--json").out)
    direct = dpaa.audit(walk / "data", lists)
    numbers = {name: value for name, value in found["numbers"].items() if value is not None}
    assert numbers == pytest.approx({name: direct.numbers[name] for name in numbers})
    assert found["kind"] == "audit"
    assert found["numbers"]["log_head_share_trend"] is None
    assert len(found["recommendations"]["winners"]) == 10
    assert set(found["meanings"]) == set(found["numbers"])


def test_checks_for_pipelines(log: Path) -> None:
    passed = run_dpaa("audit", log, "--fail-if", "log_head_share>0.8")
    assert (passed.code, passed.err) == (0, "")
    checks = [word for check in ("log_head_share>0.3", "log_gini<0", "log_items==3") for word in ("--fail-if", check)]
    failed = run_dpaa("audit", log, "--json", *checks)
    assert failed.code == 1
    assert failed.err.splitlines() == [
        "check failed: log_head_share is 0.333333, which is above 0.3",
        "check failed: log_items is 3, which is equal to 3",
    ]
    assert [check["failed"] for check in json.loads(failed.out)["checks"]] == [True, False, True]


def test_the_readmes_gate_fails_where_lists_go_to_the_head(tmp_path: Path) -> None:
    log, recs = tmp_path / "clicks.csv", tmp_path / "recs.csv"
    log.write_text("user_id,item_id\n" + "".join(f"u{n},i{n % 10}\n" for n in range(30)))
    recs.write_text("user_id,item_id,rank\n" + "".join(f"u{n},{'i0' if n else 'i9'},1\n" for n in range(18)))
    (gate,) = [line for line in README.read_text(encoding="utf-8").splitlines() if "--fail-if" in line]
    words = shlex.split(gate.split("`")[1].replace("20", "1"))[1:]
    said = run_dpaa(
        *(str(tmp_path / word).replace("parquet", "csv") if "." in word and ">" not in word else word for word in words)
    )
    assert said.code == 1
    assert "check failed: head_share@1 is 0.944444, which is above 0.8" in said.err
