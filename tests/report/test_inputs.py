"""What lies at the paths of a call, and what a run is on the page."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from dpaa.report._inputs import Audited, Comparison, Frontier, gather


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
