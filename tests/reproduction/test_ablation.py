"""Variants of DPAA."""

from __future__ import annotations

import json
from pathlib import Path

from tests.reproduction.conftest import cells


def test_the_ablation_takes_its_columns_from_settings(made: tuple[Path, str, str]) -> None:
    folder = made[0]
    rows = [row for row in cells(folder, "ablation") if row["table"] == "dpaa-as-printed recall@20"]
    assert [row["column"] for row in rows[:8]] == [
        "DPAA",
        "γ0",
        "w/o c",
        "γ0 w/o c",
        "w/o m",
        "γ0 w/o m",
        "w/o IIW",
        "w/o LW",
    ]
    results = [json.loads(file.read_text()) for file in (folder / "results" / "severity").iterdir()]
    names = ("iiw", "estimate", "weighted_layers", "layer_emphasis")
    kinds = {tuple(one["settings"][name] for name in names) for one in results if one["method"] == "dpaa"}
    blend, first, every = "blend", "first", "all"
    assert kinds == {
        (True, blend, first, 1.0), (True, blend, every, 1.0), (True, "pretrained", first, 1.0),
        (True, "pretrained", every, 1.0), (True, "current", first, 1.0), (True, "current", every, 1.0),
        (False, blend, first, 1.0), (True, blend, first, 0.0),
    }  # fmt: skip
