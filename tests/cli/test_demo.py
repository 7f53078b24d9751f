"""`dpaa demo`: the walk in one call."""

import json
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.command import Said, dpaa_ok, run_dpaa

demo = import_module("dpaa.cli.demo")  # the command has the name of its module


def test_the_table_has_the_metrics_of_the_runs(demo_said: tuple[Path, Said]) -> None:
    folder, said = demo_said
    lines = said.out.splitlines()
    for name in ("most-popular", "lightgcn", "dpaa"):
        metrics = json.loads((folder / "runs" / name / "metrics.json").read_text())["metrics"]
        expected = [f"{metrics[metric]:.4g}" for metric in demo.SHOWN]
        assert next(line.split()[1:] for line in lines if line.split()[:1] == [name]) == expected


def test_the_demo_says_what_it_comes_to(demo_said: tuple[Path, Said]) -> None:
    folder, said = demo_said
    conclusion = said.out.partition("4. Result")[2]
    headline = json.loads((folder / "debiased" / "frontier.json").read_text())["headline"]
    assert f"In this simulated world: {headline}" in conclusion
    assert "chance" not in conclusion
    assert "dpaa debias data/clicks --keep-accuracy 0.98 --out debiased" in conclusion
    assert (folder / "debiased" / "run" / "metrics.json").exists(), "the page has its test metrics"


def test_without_the_extra(demo_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    said = run_dpaa("report", demo_folder / "data", "--out", tmp_path / "page.html")
    assert said.code == 2
    assert "pip install 'dpaa[report]'" in said.err
    assert not (tmp_path / "page.html").exists()


def test_the_page_and_its_figures_have_files(demo_folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("altair")
    out, figures = tmp_path / "new" / "page.html", tmp_path / "figures"
    words = ("--figures", figures)
    said = dpaa_ok("report", demo_folder / "data", "--out", out, *words)
    assert said.out == f"page written to {out} ({out.stat().st_size / 1e6:.1f} MB)\n"
    assert f"figures written to {figures}" in said.err
    assert {file.name for file in figures.iterdir()} == {"long-tail.svg", "long-tail.png"}
