"""Packed results are the same results; what is damaged is refused in one sentence."""

import runpy
import sys
from pathlib import Path

import pytest

from dpaa.reproduction._results import ResultStore, RunResult, Study

PACK = Path(__file__).parents[2] / "scripts" / "pack_results.py"


def result(seed: int = 0, **more: object) -> RunResult:
    content = {
        "data": "s=5",
        "label": "dpaa layer_emphasis=2",
        "method": "dpaa",
        "seed": seed,
        "settings": {"layers": 4, "l2": 2.73e-06, "iiw": True, "kernel": "auto"},
        "metrics": {"drop": {"recall@20": 0.1 + 0.2, "arp@20": 1 / 3, "hit@20": None}},
        "details": {"fingerprint": "f" * 64, "training": {"best_epoch": 7}, "tuned": None},
    }
    return RunResult(**content | more)  # type: ignore[arg-type]


def store(folder: Path) -> ResultStore[RunResult]:
    return ResultStore(folder, "severity", RunResult)


def test_packed_results_are_the_same_to_the_last_digit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = store(tmp_path)
    written = {f"dpaa-{seed}": result(seed) for seed in range(3)}
    written["dpaa-failed"] = result(9, metrics={}, details={"failed": "the loss became nan"})
    for key, content in written.items():
        one.write(key, content)
    loose = {key: one.read(key) for key in written}
    assert loose["dpaa-1"] == written["dpaa-1"]
    tuned = Study(data="s=5", method="ips", fingerprint="f", settings={"l2": 1e-5}, valid=0.1, trials=2,
                  seconds=0.3, fixed={}, tuning={"space": "wide"}, tried=[{"curve": [0.1, 0.2]}])  # fmt: skip
    ResultStore(tmp_path, "tuned", Study).write("ips-1", tuned)
    monkeypatch.setattr(sys, "argv", ["pack_results.py", str(tmp_path)])
    runpy.run_path(str(PACK), run_name="__main__")
    assert sorted(file.name for file in tmp_path.rglob("*.*")) == ["severity.parquet", "tuned.parquet"]
    assert {key: one.read(key) for key in written} == loose
    assert ResultStore(tmp_path, "tuned", Study).read("ips-1") == tuned
    assert one.read("dpaa-10") is None
    one.write("dpaa-1", result(1, label="newer"))
    found = one.read("dpaa-1")
    assert found.label == "newer", "a file of its own comes first"
