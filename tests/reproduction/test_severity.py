"""The table over severities, from results whose numbers are known."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpaa.reproduction import paper, severity
from dpaa.reproduction.budget import QUICK
from dpaa.reproduction.plan import Plan
from dpaa.reproduction.results import Dialled, RunResult
from dpaa.reproduction.sources import Sources
from dpaa.reproduction.trainings import Runner

RECALLS = {"most-popular": 0.2, "lightgcn": 0.1, "ips": 0.05, "dpaa": 0.15}


def results(level: float) -> list[RunResult]:
    return [
        RunResult(
            data=f"s={level:g}",
            label=label,
            method=label,
            seed=0,
            settings={},
            metrics={"drop": {"recall@20": recall}},
            details={},
            dial=Dialled(kappa=0.5, metrics={"recall@20": 2 * recall}),
        )
        for label, recall in RECALLS.items()
    ]


def test_the_table_ranks_compares_and_stands_beside_the_papers(tmp_path: Path) -> None:
    plan = Plan(QUICK, Sources(), Runner(tmp_path, tmp_path), given_rows=tuple(RECALLS), given_severities=(5.0,))
    found = severity.table(plan, results(5), "recall@20")
    cells = {label: row[0] for label, row in found.rows}
    assert {label: cell.place for label, cell in cells.items()} == {
        "most-popular": 1,
        "lightgcn": 0,
        "ips": 0,
        "dpaa": 2,
    }
    assert cells["lightgcn"].paper == paper.SEVERITY["lightgcn"][5]
    assert cells["most-popular"].paper is None
    footer = {label: row[0] for label, row in found.footer}
    assert footer["dpaa: improvement over the best baseline"].mean == pytest.approx(50)
    assert footer["dpaa: improvement over the best baseline"].paper == pytest.approx(100 * (0.1210 / 0.1148 - 1))
    assert footer["dpaa: against most-popular"].mean == pytest.approx(-25)
    assert "1.00 at s = 5" in found.notes[0], "dpaa, lightgcn, ips: as in the paper"
    assert found.notes[1] == "LightGCN's recall@20 against the paper's: +24.4 % at s = 5."


def test_with_the_dial_nothing_of_the_paper_is_beside_it(tmp_path: Path) -> None:
    plan = Plan(QUICK, Sources(), Runner(tmp_path, tmp_path), given_rows=tuple(RECALLS), given_severities=(5.0,))
    found = severity.table(plan, results(5), "recall@20", dial=True)
    assert {label: row[0].mean for label, row in found.rows} == {label: 2 * value for label, value in RECALLS.items()}
    assert all(cell.paper is None for _, row in found.lines() for cell in row)
    assert found.notes == ()
