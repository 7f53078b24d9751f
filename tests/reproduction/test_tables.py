"""Cells, ranks, improvements and differences, from results whose numbers are known."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import pytest
from scipy import stats

from dpaa.reproduction import Chapter, Plan, Runner, Sources, Table, _paper, write_chapter
from dpaa.reproduction._budget import BUDGETS
from dpaa.reproduction._chapters import RECALL, _differences, _paired, _rows, _severity_tables, interval_text
from dpaa.reproduction._results import RunResult
from dpaa.reproduction._tables import Cell, Column, ranked

RECALLS = {"most-popular": 0.2, "lightgcn": 0.1, "ips": 0.05, "dpaa": 0.15}


def result(label: str, recall: float, seed: int = 0) -> RunResult:
    return RunResult(data="s=5", label=label, method=label, seed=seed, settings={}, details={},
                     metrics={"drop": {RECALL: recall}})  # fmt: skip


def test_a_cell_shows_mean_deviation_paper_and_difference() -> None:
    cell = Cell((0.10, 0.12), 0.13)
    assert (cell.ours(), cell.beside()) == ("0.1100 ± 0.0141", "0.1300, −0.0200")
    assert Cell((0.1,)).ours() == "0.1000"
    assert (Cell((), 0.13).ours(), Cell((), 0.13).beside()) == ("–", "0.1300")
    assert (Cell((2.0,), 1.5, form="%").ours(), Cell((2.0,), 1.5, form="%").beside()) == ("+2.0%", "+1.5%")


def test_ranks_are_those_of_what_is_shown() -> None:
    cells = [Cell((value,)) for value in (0.10001, 0.3, 0.10004, 0.2, 0.29996)]
    assert [cell.rank for cell in ranked(cells)] == [0, 1, 0, 2, 1]
    assert [cell.rank for cell in ranked([Cell((0.1,)), Cell()])] == [0, 0]


def test_the_severity_table_ranks_compares_and_stands_beside_the_papers(tmp_path: Path) -> None:
    plan = Plan(BUDGETS["quick"], Sources(), Runner(tmp_path, tmp_path), given_rows=tuple(RECALLS))
    results = [result(label, recall) for label, recall in RECALLS.items()]
    table, ndcg, *_ = _severity_tables(plan, "", "", results, _rows(plan), [5.0, 9.5], _paper.SEVERITY)
    cells = {label: row[0] for label, row in table.rows}
    assert {label: cell.rank for label, cell in cells.items()} == {
        "most-popular": 1,
        "lightgcn": 0,
        "ips": 0,
        "dpaa": 2,
    }
    assert cells["lightgcn"].paper == _paper.SEVERITY["lightgcn"][5] == 0.0804
    assert cells["most-popular"].paper is None
    ((label, (improvement, between)),) = table.footer
    assert label == "dpaa: improvement over the best baseline"
    assert improvement.mean == pytest.approx(50)
    assert improvement.paper == pytest.approx(100 * (0.1210 / 0.1148 - 1))
    assert (between.values, between.paper) == ((), None)
    assert "over 3 methods, dpaa as DPAA): 1.00 at s = 5." in table.notes[0]
    assert all(cell.paper is None for _, row in ndcg.rows for cell in row), "the paper has recall only"


def test_intervals_are_students() -> None:
    values = [0.01, 0.03, 0.02, 0.05]
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert interval_text(values) == f"+0.0275 [{expected.low:+.4f}, {expected.high:+.4f}] *".replace("-", "−")
    assert interval_text([]) == "–"
    assert interval_text([0.01]) == "+0.0100"
    assert interval_text([-0.01, 0.02]).endswith("]")


def test_differences_pair_seed_with_seed() -> None:
    column = Column("s = 5", "s=5", RECALL)
    some = [result("lightgcn", 0.1), result("lightgcn", 0.3, 1), result("dpaa", 0.35, 1), result("dpaa", 0.9, 2)]
    assert _paired(some, "dpaa", column) == pytest.approx([0.05])
    assert _differences("d", "recall@20", some, [column], "") == [], "one pair has no interval"
    every = [result(label, 0.1 * (seed + 1) + gain, seed)
             for label, gain in (("lightgcn", 0.0), ("dpaa", 0.02)) for seed in range(3)]  # fmt: skip
    (table,) = _differences("d", "recall@20", every, [column], "that draw the data too")
    assert table.rows[0] == ("dpaa − lightgcn", (Cell(text="+0.0200 [+0.0200, +0.0200] *"),))
    assert "3 seeds" in table.title


def test_the_papers_rows() -> None:
    assert _paper.row_of("dpaa-as-printed layer_emphasis=3") == "dpaa"
    assert _paper.row_of("dpaa iiw=false") == _paper.row_of("most-popular") == ""
    assert _paper.at_severity(_paper.SEVERITY, 9.0)["lightgcn"] == 0.0278
    assert _paper.at_severity(_paper.SEVERITY, 2.5) == _paper.at_severity(_paper.SEVERITY, 10.0) == {}
    assert all(len(row) == 10 for row in (*_paper.SEVERITY.values(), *_paper.ABLATION.values()))
    assert all(set(rows) == {*_paper.METHODS} for rows in (*_paper.OVERALL.values(), *_paper.GROUPS.values()))


def test_files_and_page_have_full_precision_and_no_markup_of_names(tmp_path: Path) -> None:
    odd = Table("t", "<b>", "m", ("x", "y"), (("<script>", (Cell(text="<i>"), Cell((0.1, 0.3), 0.13, rank=2))),))
    assert "<script>" not in odd.html()
    assert "&lt;script&gt;" in odd.html()
    (file,) = write_chapter(Chapter("c", "Chapter", ("About.",), (odd,)), tmp_path, "c-quick", figures=False)
    words, numbers = csv.DictReader(file.read_text().splitlines())
    assert (words["mean"], words["deviation"], words["paper"]) == ("<i>", "", "")
    assert float(numbers["deviation"]) == pytest.approx(math.sqrt(0.02), rel=1e-15)
    assert (numbers["seeds"], numbers["paper"], numbers["place"]) == ("2", "0.13", "2")
