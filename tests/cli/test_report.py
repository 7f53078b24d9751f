"""`dpaa report`: the page, its files and what it says."""

from __future__ import annotations

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


def test_the_page_has_its_title_and_figures_have_files(demo_folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("altair")
    out, figures = tmp_path / "new" / "page.html", tmp_path / "figures"
    words = ("--title", "Tea & cake", "--figures", figures, "--figure-format", "json")
    said = dpaa_ok("report", demo_folder / "data", "--out", out, *words)
    assert "<h1>Tea &amp; cake</h1>" in out.read_text(encoding="utf-8")
    assert said.out == f"page written to {out} ({out.stat().st_size / 1e6:.1f} MB)\n"
    assert f"figures written to {figures}" in said.err
    assert {file.name for file in figures.iterdir()} == {"long-tail.json"}


def test_a_page_is_replaced_only_where_this_is_asked_for(demo_folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("altair")
    page = tmp_path / "page.html"
    page.write_text("mine")
    words = ("report", demo_folder / "runs" / "most-popular", "--out", page)
    said = run_dpaa(*words)
    assert said.code == 2
    assert "page.html already exists; pass --overwrite or name another file" in " ".join(said.err.split())
    assert page.read_text() == "mine"
    dpaa_ok(*words, "--overwrite")
    assert "<html" in page.read_text(encoding="utf-8")


def test_lists_are_as_long_as_asked_for(demo_folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("altair")
    dpaa_ok("report", demo_folder / "runs" / "most-popular", "--k", 3, "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "recommended items (lists of 3 for " in " ".join(page.split())


@pytest.mark.parametrize(
    ("out", "sentence"), [("page.txt", "a page is written to .html"), ("folder.html", "is a folder")]
)
def test_what_cannot_become_a_page_is_refused(demo_folder: Path, tmp_path: Path, out: str, sentence: str) -> None:
    pytest.importorskip("altair")
    (tmp_path / "folder.html").mkdir()
    said = run_dpaa("report", demo_folder / "data", "--out", tmp_path / out)
    assert said.code == 2
    assert sentence in said.err
    assert [file.name for file in tmp_path.iterdir()] == ["folder.html"]
