"""`dpaa reproduce` as a user types it, on a world small enough to train in moments."""

from __future__ import annotations

from pathlib import Path

from tests.command import dpaa_ok
from tests.reproduction.conftest import places


def test_all_tables_figures_and_the_page_are_there(made: tuple[Path, str, str]) -> None:
    folder, out, err = made
    names = {file.name for file in (folder / "out").iterdir()}
    tables = ("datasets", "overall", "groups", "severity", "ablation", "settings")
    assert {f"{name}-quick.{form}" for name in tables for form in ("md", "tex", "csv")} <= names
    figures = ("datasets-quick-training-data", "severity-quick", "ablation-quick-dpaa")
    assert {f"{name}.{form}" for name in figures for form in ("png", "svg")} <= names
    page = (folder / "out" / "all-quick.html").read_text(encoding="utf-8")
    assert all(f'id="{name}"' in page for name in tables)
    assert 'src="http' not in page
    assert "Spearman" in out
    assert "LightGCN's recall@20 against the paper's" in out
    assert "trainings in" in err
    assert "an hour with --jobs 1" in err
    left = {run.parent.name.rpartition("-")[0] for run in (folder / "work").glob("*/*/config.json")}
    assert left == {"pretrained-lightgcn"}  # finished trainings are cleared away


def test_a_label_keeps_a_part_beside_the_whole_table(files: Path, tmp_path: Path) -> None:
    dpaa_ok("reproduce", "datasets", "--budget", "standard", "--coat", files / "coat", "--label", "mine",
            *places(tmp_path))  # fmt: skip
    names = {file.name for file in (tmp_path / "out").iterdir()}
    assert {"datasets-mine.md", "datasets-mine.tex", "datasets-mine.csv", "datasets-mine.html"} <= names
    assert not any(name.startswith("datasets.") for name in names)
    assert "--coat DIR --label mine" in (tmp_path / "out" / "datasets-mine.md").read_text(encoding="utf-8")
