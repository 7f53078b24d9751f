"""The pages on `dpaa debias` say what `results/frontier.parquet` holds (`python scripts/frontier_study.py --write`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

REASON = "scripts are not part of this copy"


@pytest.fixture(scope="module")
def study() -> Any:
    return pytest.importorskip("scripts.frontier_study", reason=REASON)


def record(study: Any, name: str, **more: Any) -> dict[str, Any]:
    return {"cell": name, "swept": list(study.SWEPT), "plain": {}} | more


def test_the_pages_are_fresh(study: Any, tmp_path: Path) -> None:
    study.write(tmp_path)
    made = sorted(tmp_path.iterdir())
    assert {"frontier.md", "frontier-promise.md", "frontier-estimates.md"} <= {file.name for file in made}
    for file in made:
        assert file.read_text(encoding="utf-8") == (study.RESULTS / file.name).read_text(encoding="utf-8"), file.name


def test_records_are_kept_and_the_last_one_counts(study: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = study.records
    monkeypatch.setattr(records, "STORE", tmp_path / "results" / "kept.parquet")
    first, second = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    records.append(first, record(study, "coat/0/unbiased", seed=1 / 3))
    records.append(second, record(study, "coat/1/unbiased", seed=1))
    records.append(second, record(study, "coat/1/unbiased", seed=2))
    records.keep([first, second])
    assert [(one["cell"], one["seed"]) for one in records.read().values()] == [
        ("coat/0/unbiased", 0.333333),
        ("coat/1/unbiased", 2),
    ]
    before = records.STORE.read_bytes()
    records.keep([tmp_path / "nothing.jsonl"])
    assert records.STORE.read_bytes() == before


def test_records_of_other_candidates_and_lines_cut_short_do_not_count(
    study: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study.records, "STORE", tmp_path / "kept.parquet")
    lines = tmp_path / "lines.jsonl"
    whole = json.dumps(record(study, "coat/2/unbiased"))
    lines.write_text(json.dumps(record(study, "coat/0/unbiased", swept=["ease"])) + "\n" + whole[:-3], encoding="utf-8")
    assert study.records.read(lines) == {}


def test_a_cell_whose_record_has_all_models_is_not_made_again(
    study: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study.records, "STORE", tmp_path / "kept.parquet")
    lines = tmp_path / "lines.jsonl"
    made: list[str] = []

    class Store:
        def make(self, cell: Any, models: list[str]) -> None:
            made.append(cell.name)

        def file(self, cell: Any, name: str) -> Path:
            return tmp_path / "lists" / cell.name / name

    asked = type("Asked", (), {"seeds": 2, "slow_seeds": 0, "only": "coat"})
    study.records.append(lines, record(study, "coat/0/unbiased", plain=dict.fromkeys(study.SWEPT)))
    study.run("promise", Store(), lines, asked, lambda: False)
    assert made == ["coat/1/unbiased"]
    study.run("frontier", Store(), lines, asked, lambda: False)
    assert made == ["coat/1/unbiased", "coat/0/unbiased", "coat/1/unbiased"]  # every method of the paper is wanted
