from __future__ import annotations

from dataclasses import dataclass

import pytest

from dpaa.cli.console import attributes, cells, number, print_objects


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
