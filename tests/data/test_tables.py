"""A table reads some of its columns and says where a row is; what a column means is tested with `log`."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from dpaa.data.tables import as_table, open_table
from dpaa.errors import InputError


def test_rows_are_named_as_a_user_would_find_them(tmp_path: Path) -> None:
    frame = pl.DataFrame({"user": ["a", "b"], "item": ["x", "y"]})
    frame.write_parquet(tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text("user,item\n\na,x\nb,y\n")
    (tmp_path / "a.txt").write_text("a x\nb y\n")
    places = {"a.parquet": "row 2 of", "a.csv": "line 4 of", "a.txt": "pair 2 of"}
    for name, place in places.items():
        table = open_table(tmp_path / name)
        assert table.place(1) == f"{place} {tmp_path / name}"
        assert table.read(table.columns).rows() == [("a", "x"), ("b", "y")]
        assert table.typed == (name == "a.parquet")
    assert as_table(frame, "the frame").place(1) == "row 1 of the frame"


def test_inter_files_are_read_without_the_types_of_their_header(tmp_path: Path) -> None:
    (tmp_path / "a.inter").write_text("user_id:token\titem_id:token\n1\t2\n")
    table = open_table(tmp_path / "a.inter")
    assert table.columns == ("user_id", "item_id")
    assert table.read(["item_id"]).rows() == [("2",)]


def test_a_format_that_cannot_be_told(tmp_path: Path) -> None:
    (tmp_path / "a.dat").write_text("user,item\n1,2\n")
    with pytest.raises(InputError, match="pass --format with one of csv, tsv, inter, jsonl, parquet, list"):
        open_table(tmp_path / "a.dat")
