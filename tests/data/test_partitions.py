"""Folders that Spark, Ray or Hive have partitioned."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from dpaa.data.inputs import open_log
from dpaa.data.log import read_log
from dpaa.data.sources.files import from_file
from tests.command import dpaa_ok

ROWS = pl.DataFrame(
    {
        "user_id": [1, 2, 3, 4, 1, 2, 3, 4],
        "item_id": ["a", "b", "c", "a", "b b", "b", "a/c", "c"],
        "rating": [5, 4, 3, 2, 1, 5, 4, 3],
        "date": ["2024-05-01"] * 4 + ["2024-05-02"] * 4,
    }
)


def partitioned(folder: Path, by: list[str]) -> Path:
    """As others write it, with their own files beside."""
    ROWS.write_parquet(pl.PartitionBy(folder, key=by, include_key=False), mkdir=True)
    (folder / "_SUCCESS").touch()
    return folder


@pytest.mark.parametrize("by", [["date"], ["item_id"], ["user_id"], ["date", "rating"]])
def test_columns_of_the_path_are_columns(by: list[str], tmp_path: Path) -> None:
    log = read_log(open_log(partitioned(tmp_path / "log", by)))
    found = log.frame.sort("user_id", "item_id", "timestamp")
    names = ["user_id", "item_id", "rating"]
    assert found.select(names).equals(ROWS.sort("user_id", "item_id", "date").select(names), null_equal=True)
    assert found["timestamp"].dtype == pl.Datetime("us", "UTC")


def test_text_files_too_and_nothing_is_nothing(tmp_path: Path) -> None:
    for name, rows in (("shop=12", "u,1\nu,2\n"), ("shop=__HIVE_DEFAULT_PARTITION__", "v,3\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "part.csv").write_text(f"user,item\n{rows}")
    table = open_log(tmp_path)
    assert sorted(table.read(["user", "shop"]).rows()) == [("u", "12"), ("u", "12"), ("v", None)]
    assert table.place(2).startswith("line ")


def test_a_partitioned_folder_becomes_a_dataset_also_in_pieces(tmp_path: Path) -> None:
    place = partitioned(tmp_path / "log", ["date"])
    whole = from_file(place)
    dpaa_ok("data", "log", place, "--memory", 1e-9, "--out", tmp_path / "made")
    assert f'"{whole.fingerprint}"' in (tmp_path / "made/dataset.json").read_text()
