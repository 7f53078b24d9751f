from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from dpaa.errors import InputError
from dpaa.runs.model import Model
from dpaa.runs.stream import check_target, write_stream


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_streamed_file_is_the_table(model: Model, tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = model.recommend(k=6)
    monkeypatch.setattr("dpaa.ranking.rank.BLOCK_SCORES", 2000)
    file = tmp_path / f"recs.{ending}"
    rows = write_stream(model.recommend_blocks(k=6), model.recommendation_schema, file)
    found = pl.read_parquet(file) if ending == "parquet" else pl.read_csv(file, schema=whole.schema)
    assert rows == whole.height
    assert found.drop("score").equals(whole.drop("score"))
    assert list(tmp_path.iterdir()) == [file]


def test_what_fails_on_the_way_leaves_nothing(tmp_path: Path) -> None:
    def blocks() -> Iterator[pl.DataFrame]:
        yield pl.DataFrame({"a": [1]})
        raise InputError("this went wrong")

    with pytest.raises(InputError, match="this went wrong"):
        write_stream(blocks(), {"a": pl.Int64}, tmp_path / "x.parquet")
    assert list(tmp_path.iterdir()) == []


def test_targets_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "there.csv").write_text("x")
    (tmp_path / "folder.csv").mkdir()
    for name, sentence in (
        ("recs.xlsx", "has the ending '.xlsx'; a table is written to .parquet or .csv"),
        ("there.csv", "already exists; pass --overwrite"),
        ("folder.csv", "is a folder"),
        ("no/where/recs.csv", "there is no folder"),
    ):
        with pytest.raises(InputError, match=sentence):
            check_target(tmp_path / name, overwrite=False)
    check_target(tmp_path / "there.csv", overwrite=True)
