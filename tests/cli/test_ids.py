"""Ids on the command line: with commas, from files, and such as look like markup or files."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from dpaa.cli.ids import read_ids
from dpaa.errors import InputError


def test_ids_come_with_commas_or_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "one,two.txt"
    file.write_text("7\n\n9\n")
    assert read_ids(["4,196", f"@{file}"], pl.Series([1, 2]), "user").to_list() == [4, 196, 7, 9]
    assert read_ids(["a,@@at", "3"], pl.Series(["a"]), "user").to_list() == ["a", "@at", "3"]
    file.write_text("x,y\nz\n")
    assert read_ids([f"@{file}"], pl.Series(["a"]), "item").to_list() == ["x,y", "z"]


def test_ids_of_another_type_and_empty_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the model's user ids are integers \(such as 1\), but 'x' is not"):
        read_ids(["3", "x"], pl.Series([1]), "user")
    with pytest.raises(InputError, match="but '' is not"):
        read_ids(["4,"], pl.Series([1]), "user")
    (tmp_path / "empty").touch()
    with pytest.raises(InputError, match="has no item ids; give one id a line"):
        read_ids([f"@{tmp_path / 'empty'}"], pl.Series([1]), "item")
