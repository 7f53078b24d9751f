"""`dpaa demo`: the walk in one call."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.command import Said, run_dpaa

demo = import_module("dpaa.cli.demo")  # the command has the name of its module


def test_the_demo_ends_with_the_page(demo_said: tuple[Path, Said]) -> None:
    folder, said = demo_said
    assert said.out.splitlines()[-1].endswith(f"browser: {(folder / 'report.html').resolve()}")


def test_the_table_has_the_metrics_of_the_runs(demo_said: tuple[Path, Said]) -> None:
    folder, said = demo_said
    lines = said.out.splitlines()
    for name in ("most-popular", "lightgcn", "dpaa"):
        metrics = json.loads((folder / "runs" / name / "metrics.json").read_text())["metrics"]
        expected = [f"{metrics[metric]:.4f}" for metric in demo.SHOWN.values()] + [f"{metrics['arp@20']:.0f}"]
        assert next(line.split()[1:] for line in lines if line.split()[:1] == [name]) == expected


def test_dpaa_starts_from_the_lightgcn_beside_it(demo_said: tuple[Path, Said]) -> None:
    folder, said = demo_said
    manifest = json.loads((folder / "runs" / "dpaa" / "manifest.json").read_text())
    assert Path(manifest["pretrained"]["run"]).resolve() == (folder / "runs" / "lightgcn").resolve()
    assert sorted(file.name for file in (folder / "runs").iterdir()) == ["dpaa", "lightgcn", "most-popular"]
    compared = json.loads((folder / "comparison.json").read_text())
    assert [entry["name"] for entry in compared["entries"]] == ["lightgcn", "dpaa"]
    assert "\ndpaa against lightgcn: " in said.out


def test_what_is_there_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "diary.txt").write_text("dear")
    said = run_dpaa("demo", "--out", tmp_path)
    assert said.code == 2
    assert "already exists; pass --overwrite or choose another folder with --out" in said.err
    assert [file.name for file in tmp_path.iterdir()] == ["diary.txt"]


def test_without_the_extra_it_ends_well_and_says_what_to_install(
    demo_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    demo._write_page([demo_folder / "data"], tmp_path / "page.html")
    said = capsys.readouterr()
    assert "there is no page: " in said.err
    assert "pip install 'dpaa[report]'" in " ".join(said.err.split())
    assert said.out == ""
    assert not list(tmp_path.iterdir())
