from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from dpaa.cli.console import attributes, cells, number, print_objects

HANGS = 120
"""Seconds after which a command that takes one or two hangs."""


def in_shell(line: str, *words: object) -> subprocess.CompletedProcess[str]:
    """`sh -c LINE`, where `"$@"` is `dpaa WORDS…` and descriptors can be closed."""
    call = ["sh", "-c", line, "sh", sys.executable, "-m", "dpaa", *map(str, words)]
    return subprocess.run(call, capture_output=True, text=True, check=False, timeout=HANGS)


@dataclass
class Item:
    name: str
    share: float | None


def test_numbers_that_are_missing_or_undefined_are_a_dash() -> None:
    assert cells(".1%", 0.5, None, float("nan")) == ["50.0%", "-", "-"]
    assert attributes(Item("x", None), "name", "share:.1%") == ["x", "-"]


def test_large_numbers_have_one_decimal() -> None:
    assert [number(value) for value in (0.12345, 99.0, 1234.56, None)] == ["0.1235", "99.0000", "1,234.6", "-"]
    assert number(0.5, "+") == "+0.5000"


def test_objects_become_rows(capsys: pytest.CaptureFixture[str]) -> None:
    print_objects("Shares", {"item": "name", "share": "share:.1%"}, [Item("x", 0.25), Item("y", None)])
    shown = capsys.readouterr().out.split()
    assert shown[:3] == ["Shares", "item", "share"]
    assert shown[-4:] == ["x", "25.0%", "y", "-"]
    print_objects("Nothing", {"item": "name"}, [])
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("closed", [">&- 2>&-", "<&- >&- 2>&-", "<&-"])
def test_closed_descriptors_are_no_reason_to_hang(walk: Path, closed: str) -> None:
    ended = in_shell(f'"$@" {closed}', "data", "describe", walk / "data")
    assert ended.returncode == 0, ended.stderr
    assert bool(ended.stdout) == (closed == "<&-")
