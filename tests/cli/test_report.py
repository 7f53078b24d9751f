"""`dpaa report`: the page, its files and what it says."""

import sys
from pathlib import Path

import pytest

from tests.command import dpaa_ok, run_dpaa


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
