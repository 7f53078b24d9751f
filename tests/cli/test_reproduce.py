"""`dpaa reproduce`: its help, and a call that names nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command import dpaa_ok, run_dpaa


def test_help_has_an_example() -> None:
    said = run_dpaa("reproduce", "--help")
    assert "dpaa reproduce severity --budget quick" in said.out


def test_a_call_without_a_table_packs_or_says_what_to_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = run_dpaa("reproduce")
    assert said.code == 2
    assert "name a table" in said.err
    assert "0 results packed in results" in dpaa_ok("reproduce", "--pack").err
