"""Settings that a study chose."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.command import dpaa_ok, run_dpaa
from tests.reproduction.conftest import TINY, places


def test_standard_tunes_at_0_5_9_and_others_take_the_nearest(
    files: Path, tmp_path: Path, studies: list[dict[str, Any]]
) -> None:
    rows = ("--method", "lightgcn", "--method", "dpaa", "--method", "ips cap_quantile=1.0")
    call = ("reproduce", "severity", "--budget", "standard", "--kuairec", files / "kuairec", *rows, *TINY,
            "--severity", 1, "--severity", 8, "--seeds", 1, *places(tmp_path))  # fmt: skip
    told = dpaa_ok(*call).err
    assert "\n12 trainings in " in told  # 8 rows, most-popular's among them, and 4 of 8 trials: the others were kept
    assert [(one["data"], one["method"]) for one in studies] == [
        ("kuairec-s0-seed0", "lightgcn"), ("kuairec-s0-seed0", "dpaa"),
        ("kuairec-s9-seed0", "lightgcn"), ("kuairec-s9-seed0", "dpaa"),
    ]  # fmt: skip
    first = studies[0]
    assert (first["space"], first["trials"], first["prune_after"], first["seeds"]) == ("wide", 12, 30, 0)
    assert first["values"] == {"learning_rate": (1e-3, 1e-4)}
    assert first["settings"] == {"embedding_size": "4", "layers": "1", "epochs": "2"}
    found = [json.loads(file.read_text()) for file in (tmp_path / "results" / "severity").iterdir()]
    rates = {
        (one["method"], one["data"]): one["settings"]["learning_rate"]
        for one in found
        if one["method"] != "most-popular"
    }
    assert rates["lightgcn", "s=1"] == rates["dpaa", "s=1"] == 1e-2
    assert rates["lightgcn", "s=8"] == rates["dpaa", "s=8"] == 1e-4
    assert rates["ips", "s=8"] == 1e-3
    told = (tmp_path / "out" / "severity.md").read_text(encoding="utf-8")
    assert "In this call: 1 seed; severity 1, 8; embedding_size 4; layers 1; epochs 2." in told
    # The pre-trained model has the settings that were not searched, as in the trials.
    plain = [
        json.loads(file.read_text())["learning_rate"] for file in (tmp_path / "work").glob("*/pretrained-*/config.json")
    ]
    assert set(plain) == {1e-3}
    kept = [json.loads(file.read_text()) for file in (tmp_path / "results" / "tuned").iterdir()]
    assert all(len(one["tried"]) == one["trials"] == 2 for one in kept)
    studies.clear()
    said = dpaa_ok(*call)
    assert studies == []
    assert "nothing was trained" in said.err


def test_settings_chosen_for_something_else_are_refused(
    files: Path, tmp_path: Path, studies: list[dict[str, Any]]
) -> None:
    call = ("reproduce", "overall", "--budget", "standard", "--coat", files / "coat", "--method", "lightgcn", *TINY,
            "--seeds", 1, *places(tmp_path))  # fmt: skip
    dpaa_ok(*call)
    dpaa_ok(*call, "--set", "layers=2")
    one, other = (tmp_path / "results" / "tuned").glob("lightgcn-*.json")
    for target, source in ((one, other), (other, one)):
        kept = target.read_bytes()
        target.write_bytes(source.read_bytes())
        said = [run_dpaa(*call), run_dpaa(*call, "--set", "layers=2")]
        target.write_bytes(kept)
        assert sorted(one.code for one in said) == [0, 2]
        assert "was chosen for another dataset, method or budget; remove it" in "".join(one.err for one in said)
    assert len(studies) == 2
