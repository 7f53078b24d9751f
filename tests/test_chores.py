"""Thirty chores, each one command or three lines of Python, on a log like MovieLens and on Coat."""

import contextlib
from collections import Counter
from pathlib import Path

import pytest

chores = pytest.importorskip("examples.chores", reason="examples are not part of this copy")
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("short_trainings")]


def test_there_are_thirty_and_each_is_short() -> None:
    assert len(chores.CHORES) == 30
    assert set(Counter(chore.part for chore in chores.CHORES)) == set(range(1, 10))
    for chore in chores.CHORES:
        assert bool(chore.command) != bool(chore.python)
        assert len(chore.python.splitlines()) <= 3
        assert "\n" not in chore.command
        assert chore.command.startswith("dpaa ") or chore.python


def all_done(folder: Path, coat: Path | None) -> int:
    todo = chores.prepare(folder, coat)
    with contextlib.chdir(folder):
        for chore in todo:
            wrong = chores.done(chore)
            assert wrong is None, f"{chore.wish}: {wrong}"
    return len(todo)


def test_on_a_log_like_movielens(tmp_path: Path) -> None:
    assert all_done(tmp_path, None) == 30


def test_on_coat(real_data: Path, tmp_path: Path) -> None:
    assert all_done(tmp_path, real_data / "coat") >= 15
