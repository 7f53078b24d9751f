"""Tables written a block at a time: whole or not at all, in four formats."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

import dpaa
from dpaa import Dataset, InputError
from dpaa.runs.stream import check_target, write_stream
from tests.conftest import TINY

TABLE = pl.DataFrame({"user_id": ["a", 'ü, "b"', "c\td"], "item_id": [1, 2, 2**60], "score": [0.5, -1.0, 1e-9]})


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".tsv", ".jsonl"])
def test_what_is_written_can_be_read(ending: str, tmp_path: Path) -> None:
    file = tmp_path / f"table{ending}"
    check_target(file, overwrite=False)
    assert write_stream(iter([TABLE[:1], TABLE[1:]]), TABLE.schema, file) == 3
    readers = {
        ".parquet": pl.read_parquet,
        ".csv": pl.read_csv,
        ".tsv": lambda path: pl.read_csv(path, separator="\t"),
        ".jsonl": pl.read_ndjson,
    }
    assert readers[ending](file).equals(TABLE)
    with pytest.raises(InputError, match="already exists; pass --overwrite"):
        check_target(file, overwrite=False)
    assert [one.name for one in tmp_path.iterdir()] == [file.name]


def test_an_error_on_the_way_is_raised_as_it_is_and_leaves_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    file.write_text("old")

    def blocks() -> Iterator[pl.DataFrame]:
        yield TABLE
        raise InputError("the model is gone")

    with pytest.raises(InputError, match="the model is gone"):
        write_stream(blocks(), TABLE.schema, file)
    assert file.read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["table.csv"]


def test_no_rows_are_an_empty_table(tmp_path: Path) -> None:
    assert write_stream(iter([]), TABLE.schema, tmp_path / "none.parquet") == 0
    assert pl.read_parquet(tmp_path / "none.parquet").schema == TABLE.schema


def test_lines_after_the_first_epochs_and_the_last(small_world: Dataset, capsys: pytest.CaptureFixture[str]) -> None:
    dpaa.fit(small_world, "dpaa", progress=True, **TINY | {"epochs": 9})
    lines = capsys.readouterr().err.splitlines()
    assert any(line.startswith("dpaa starts from a pre-trained model") for line in lines)
    for name in ("lightgcn", "dpaa"):
        mine = [line for line in lines if line.startswith(f"{name}: epoch")]
        assert [line.split()[2] for line in mine] == ["1", "2", "5", "9"]
        assert all("loss 0." in line and "recall@20 0." in line and "(best in epoch" in line for line in mine)
        assert mine[-1].endswith("at most 0 s left")
    dpaa.fit(small_world, "lightgcn", **TINY)
    assert capsys.readouterr() == ("", ""), "nothing is shown unless wanted"
