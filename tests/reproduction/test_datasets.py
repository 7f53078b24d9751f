"""Sizes of datasets, ours beside the paper's."""

from __future__ import annotations

from pathlib import Path

from dpaa.data.dataset import read_dataset
from dpaa.reproduction import datasets
from dpaa.reproduction.budget import QUICK
from dpaa.reproduction.plan import Plan
from dpaa.reproduction.sources import Sources
from dpaa.reproduction.trainings import Runner


def test_sizes_are_counted_and_stand_beside_the_papers(files: Path, tmp_path: Path) -> None:
    sources = Sources(coat=files / "coat", kuairec=files / "kuairec")
    plan = Plan(QUICK, sources, Runner(tmp_path, tmp_path), given_severities=(9.0,))
    found = datasets.chapter(plan)
    sizes, severities = found.tables
    row = dict(zip(sizes.columns, sizes.rows[0][1], strict=True))
    coat = plan.real["coat"]
    assert row["users"].mean == coat.n_users
    assert row["users"].paper == 290
    assert row["interactions"].mean == len(coat.train) + len(coat.valid) + len(coat.test)
    assert row["in train and test"].mean == 25
    biased = dict(zip(severities.columns, severities.rows[0][1], strict=True))
    assert biased["training pairs"].mean == len(read_dataset(plan.severity_folder(9.0, 0)).train)
    assert 0 < biased["% of pairs of the top 1 % of items"].mean <= 100
    assert [line.partition(" is ")[0] for line in found.missing] == ["KuaiRec", "Yahoo! R3"]
