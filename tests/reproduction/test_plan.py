"""Rows of a plan."""

from __future__ import annotations

from pathlib import Path

from dpaa.reproduction.budget import BUDGETS
from dpaa.reproduction.plan import Plan
from dpaa.reproduction.sources import Sources
from dpaa.reproduction.trainings import Runner


def test_a_row_is_there_once_under_the_name_the_paper_knows(tmp_path: Path) -> None:
    given = ("sam_reg", "dpaa", "dpaa", "dpaa_as_printed layer_emphasis=2", "most_popular", "sam-reg")
    plan = Plan(BUDGETS["quick"], Sources(), Runner(tmp_path, tmp_path), given_rows=given)
    assert plan.rows == ("sam-reg", "dpaa", "dpaa-as-printed layer_emphasis=2", "most-popular")
