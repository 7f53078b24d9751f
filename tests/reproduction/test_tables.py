"""Cells, ranks and improvements, from results whose numbers are known; packed results are the same results."""

import csv
import math
import runpy
import sys
from pathlib import Path

import pytest

from dpaa.reproduction import BUDGETS, Chapter, Plan, Table, _paper, write_chapters
from dpaa.reproduction._chapters import RECALL, _severity_tables
from dpaa.reproduction._results import ResultStore, RunResult, Study
from dpaa.reproduction._tables import Cell

RECALLS = {"most-popular": 0.2, "lightgcn": 0.1, "ips": 0.05, "dpaa": 0.15}


def result(label: str, recall: float, seed: int = 0) -> RunResult:
    return RunResult(data="s=5", label=label, method=label, seed=seed, settings={}, details={},
                     metrics={"drop": {RECALL: recall}})  # fmt: skip


def test_a_cell_shows_mean_deviation_paper_and_difference() -> None:
    assert Cell((0.10, 0.12), 0.13, rank=1).shown() == "★ 0.1100 ± 0.0141\n(0.1300, −0.0200)"
    assert Cell((0.1,)).shown() == "0.1000"
    assert Cell((), 0.13).shown() == "–\n(0.1300)"
    assert Cell(text="words").shown() == "words"


def test_the_severity_table_ranks_compares_and_stands_beside_the_papers(tmp_path: Path) -> None:
    plan = Plan(BUDGETS["quick"], {}, tmp_path, tmp_path)
    results = [result(label, recall) for label, recall in RECALLS.items()]
    labels = {label: label for label in RECALLS}
    table, ndcg, *_ = _severity_tables(plan, "", "", results, labels, [5.0, 9.5], _paper.SEVERITY)
    (label, (improvement, between)) = table.rows[-1]
    cells = {label: row[0] for label, row in table.rows[:-1]}
    assert {label: cell.rank for label, cell in cells.items()} == {
        "most-popular": 1,
        "lightgcn": 0,
        "ips": 0,
        "dpaa": 2,
    }
    assert cells["lightgcn"].paper == _paper.SEVERITY["lightgcn"][5] == 0.0804
    assert cells["most-popular"].paper is None
    assert label == "dpaa: improvement over the best baseline, %"
    assert improvement.mean == pytest.approx(50)
    assert improvement.paper == pytest.approx(100 * (0.1210 / 0.1148 - 1))
    assert (between.values, between.paper) == ((), None)
    assert all(cell.paper is None for _, row in ndcg.rows for cell in row), "the paper has recall only"


def test_files_have_full_precision_and_the_page_has_every_cell(tmp_path: Path) -> None:
    odd = Table("t", "Odd", "m", ("x", "y"), [("a|b", [Cell(text="<i>"), Cell((0.1, 0.3), 0.13, rank=2)])])
    chapter = Chapter("c", "Chapter", ("About.",), (odd,), missing=("gone",))
    file, page = write_chapters([chapter], tmp_path, "all", "-quick", "Made by hand.")
    words, numbers = csv.DictReader(file.read_text().splitlines())
    assert (words["mean"], words["deviation"], words["paper"]) == ("<i>", "", "")
    assert float(numbers["deviation"]) == pytest.approx(math.sqrt(0.02), rel=1e-15)
    assert (numbers["seeds"], numbers["paper"], numbers["place"]) == ("2", "0.13", "2")
    assert page.name == "all-quick.md"
    assert page.read_text().splitlines() == [
        "# Published tables, reproduced", "", "Made by hand.", "", "## Chapter", "", "About.", "", "### Odd", "",
        "| m | x | y |", "| --- | --- | --- |",
        "| a\\|b | <i> | ☆ 0.2000 ± 0.1414<br>(0.1300, +0.0700) |", "", "- gone",
    ]  # fmt: skip


PACK = Path(__file__).parents[2] / "scripts" / "pack_results.py"


def trained(seed: int = 0, **more: object) -> RunResult:
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


def test_packed_results_are_the_same_to_the_last_digit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = ResultStore(tmp_path, "severity", RunResult)
    written = {f"dpaa-{seed}": trained(seed) for seed in range(3)}
    written["dpaa-failed"] = trained(9, metrics={}, details={"failed": "the loss became nan"})
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
    one.write("dpaa-1", trained(1, label="newer"))
    assert one.read("dpaa-1").label == "newer", "a file of its own comes first"
