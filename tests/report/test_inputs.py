"""What lies at the paths of a call, and what a run is on the page."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dpaa.errors import InputError
from dpaa.report._inputs import Audited, Comparison, Frontier, gather
from tests.report.folders import copy_of


def test_exposure_is_that_of_recommend(demo_folder: Path) -> None:
    (run,) = gather([demo_folder / "runs" / "lightgcn"]).runs
    known = run.model.user_ids.gather(run.family.users)
    counts = Counter(run.model.recommend(known, k=20)["item_id"])
    assert run.exposure.tolist() == [counts[item] for item in run.model.item_ids]


def test_what_is_named_twice_is_there_once(demo_folder: Path) -> None:
    run = demo_folder / "runs" / "lightgcn"
    found = gather([run, demo_folder / "data", str(run), demo_folder / "comparison.json"])
    assert [(family.name, len(family.runs)) for family in found.families] == [("demo", 1)]
    assert (len(found.of(Comparison)), found.of(Audited), found.of(Frontier)) == (1, [], [])
    assert found.notes == []


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"deltas": None}, "deltas: Input should be a valid list"),
        ({"k": "many"}, "k: Input should be a valid integer"),
        ({"baseline": {"x": []}}, "baseline: Input should be a valid string"),
        ({"confidence": None}, "confidence: Input should be a valid number"),
        ({"no_harm": [7]}, "no_harm.0: "),
    ],
)
def test_a_damaged_file_is_one_sentence(demo_folder: Path, tmp_path: Path, change: dict[str, Any], where: str) -> None:
    content = json.loads((demo_folder / "comparison.json").read_text()) | change
    (tmp_path / "c.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match=where):
        gather([tmp_path / "c.json"])


def test_damaged_metrics_are_one_sentence(demo_folder: Path, tmp_path: Path) -> None:
    run = copy_of(demo_folder / "runs" / "lightgcn", tmp_path / "run")
    content = json.loads((run / "metrics.json").read_text())
    content["protocol"]["k"] = []
    (run / "metrics.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"metrics.json is damaged or of another version \(protocol.k: "):
        gather([run])
