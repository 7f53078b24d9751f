"""Ids that look like something else: markup, emoji, files, spaces at the end."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from dpaa.data.dataset import Dataset
from dpaa.errors import InputError
from dpaa.runs.fit import fit_into, make_method
from dpaa.runs.model import load
from tests.command import dpaa_ok

USERS = ["[/x]", "[red]x[/red]", ":smile:", "@at", "user 9 "]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    pairs = pl.DataFrame({"user_id": USERS, "item_id": ["[bold]i4"] * 5}).extend(
        pl.DataFrame({"user_id": ["other"], "item_id": [":cat:"]})
    )
    data = Dataset.from_frame(pairs, name="odd")
    fit_into(tmp_path / "run", data, make_method(data, "most-popular", {}))
    return tmp_path / "run"


@pytest.mark.parametrize("user", USERS)
def test_ids_are_shown_as_they_are(run: Path, user: str) -> None:
    given = f"@{user}" if user.startswith("@") else user
    shown = dpaa_ok("recommend", run, "--users", given, "--k", "2").out
    assert user in shown
    assert ":cat:" in shown


def test_a_file_of_ids_keeps_their_spaces(run: Path, tmp_path: Path) -> None:
    (tmp_path / "users.txt").write_text("user 9 \n[/x]\n\n")
    shown = dpaa_ok("recommend", run, "--users", f"@{tmp_path / 'users.txt'}", "--k", "1").out
    assert "user 9 " in shown
    assert "[/x]" in shown


def test_a_bare_string_is_not_a_list_of_letters(run: Path) -> None:
    with pytest.raises(InputError, match="'other' is one user id where a list of ids is needed"):
        load(run).recommend("other")


def test_every_file_of_a_run_is_as_readable_as_any_other(run: Path, tmp_path: Path) -> None:
    (tmp_path / "any").write_text("x")
    mode = (tmp_path / "any").stat().st_mode
    assert {file.name: file.stat().st_mode for file in run.iterdir()} == {file.name: mode for file in run.iterdir()}
