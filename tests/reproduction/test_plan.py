"""Rows of a plan."""

from __future__ import annotations

from pathlib import Path

from dpaa.reproduction.budget import BUDGETS, DEFAULT_TRAINING
from dpaa.reproduction.plan import Plan
from dpaa.reproduction.sources import Sources
from dpaa.reproduction.trainings import Runner


def test_a_row_is_there_once_under_the_name_the_paper_knows(tmp_path: Path) -> None:
    given = ("sam_reg", "dpaa", "dpaa", "dpaa_as_printed layer_emphasis=2", "most_popular", "sam-reg")
    plan = Plan(BUDGETS["quick"], Sources(), Runner(tmp_path, tmp_path), given_rows=given)
    assert plan.rows == ("sam-reg", "dpaa", "dpaa-as-printed layer_emphasis=2", "most-popular")


def test_seeds_of_training_share_a_draw_of_the_data_only_where_draws_are_apart(files: Path, tmp_path: Path) -> None:
    def folder(budget: str, seed: int, draw: int = 0) -> Path:
        sources, runner = Sources(kuairec=files / "kuairec"), Runner(tmp_path, tmp_path / "work")
        plan = Plan(BUDGETS[budget], sources, runner, given_severities=(9.0,))
        return plan.severity_spec("lightgcn l2=0", "lightgcn l2=0", 9.0, seed, {}, draw).folder

    assert folder("standard-2", 0) == folder("standard-2", 2) == folder("standard", 0)
    assert folder("standard-2", 0, draw=2) == folder("standard", 2) != folder("standard", 0)


def test_standard_2_trains_all_alike_whatever_the_defaults_become(files: Path, tmp_path: Path) -> None:
    plan = Plan(BUDGETS["standard-2"], Sources(kuairec=files / "kuairec"), Runner(tmp_path, tmp_path / "work"))
    specs = [plan.severity_spec(f"{row} l2=0", row, 9.0, 1, {}) for row in ("lightgcn", "dpaa", "ips", "macr")]
    ways = [{name: spec.settings[name] for name in DEFAULT_TRAINING} | {"size": spec.settings["embedding_size"]}
            for spec in specs]  # fmt: skip
    assert ways == [DEFAULT_TRAINING | {"size": 64}] * 4
    assert {spec.protocol for spec in specs} == {"standard-2"}
