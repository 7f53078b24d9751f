"""Rows with faults: all kinds in one sentence, or left out, counted and handed over."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from dpaa.data.log import ColumnNames, Reading, read_log
from dpaa.data.positive import PositiveRule
from dpaa.data.tables import as_table, open_table
from dpaa.errors import InputError

DROP, TIMED = Reading(drop_invalid=True), Reading(drop_invalid=True, times_needed=True)
MESSY = """user,item,rating,time
1,10,5,2024-01-01
1,11,good,2024-01-02
,12,3,2024-01-03
2,13,4
2,14,4,soon

2,,4,2024-01-06
user,item,rating,time
3,15,4,2024-01-07
3,16,fine,later
"""


def write(folder: Path, text: str | bytes, name: str = "messy.csv") -> Path:
    file = folder / name
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def test_all_kinds_of_faults_are_named_at_once(tmp_path: Path) -> None:
    file = write(tmp_path, MESSY)
    with pytest.raises(InputError) as refused:
        read_log(open_table(file), reading=Reading(times_needed=True))
    assert str(refused.value) == (
        f"{file} has 5 kinds of faults: another number of fields than the header's 4 (1 row, first line 5), "
        "nothing in column 'user' (1 row, first line 4), nothing in column 'item' (1 row, first line 8), "
        "no number in column 'rating' (3 rows, first 'good' in line 3), "
        "no time in column 'time' (3 rows, first 'soon' in line 6); "
        "correct them, or leave such rows out with --drop-invalid"
    )


def test_one_kind_says_how_often(tmp_path: Path) -> None:
    file = write(tmp_path, "user,item,rating\n1,2,x\n1,3,4\n1,4,y\n1,5,z\n")
    with pytest.raises(InputError) as refused:
        read_log(open_table(file))
    assert str(refused.value) == (
        f"column 'rating' has 'x' in line 2 of {file}, which is not a number (and in 2 rows more); correct the row or "
        "name another column, or leave such rows out with --drop-invalid"
    )


def test_rows_with_faults_are_left_out_and_handed_over(tmp_path: Path) -> None:
    file = write(tmp_path, MESSY)
    log = read_log(open_table(file), reading=TIMED)
    assert log.frame.select("user_id", "item_id", "rating").rows() == [(1, 10, 5.0), (3, 15, 4.0)]
    assert log.notes[0].startswith(f"{file}: 7 of 9 rows are invalid and left out: another number of fields")
    assert log.invalid is not None
    assert log.invalid.columns == ["source", "row", "fault", "content"]
    assert log.invalid.select("row", "content").rows() == [
        (3, "1,11,good,2024-01-02"),
        (4, ",12,3,2024-01-03"),
        (5, "2,13,4"),
        (6, "2,14,4,soon"),
        (8, "2,,4,2024-01-06"),
        (9, "user,item,rating,time"),
        (11, "3,16,fine,later"),
    ]
    faults = dict(log.invalid.select("row", "fault").iter_rows())
    assert faults[11] == "no number in column 'rating'; no time in column 'time'"
    assert faults[5] == "another number of fields than the header's 4"


def test_without_times_more_rows_are_sound(tmp_path: Path) -> None:
    log = read_log(open_table(write(tmp_path, MESSY)), reading=DROP)
    assert log.frame["item_id"].to_list() == [10, 14, 15]
    assert log.frame["timestamp"].null_count() == 1


def test_every_row_is_wrong(tmp_path: Path) -> None:
    file = write(tmp_path, "user,item,rating\n1,2,x\n1,3,y\n")
    with pytest.raises(
        InputError, match=r"every row of .* is invalid: no number in column 'rating' \(2 rows, first 'x'"
    ):
        read_log(open_table(file), reading=DROP)


@pytest.mark.parametrize(
    ("text", "kept", "kinds"),
    [
        ('user,item\n1,2\n3,"4\n5,6\n7,8\n', [2, 6, 8], ["wrong quotes"]),
        ('user,item\n1,2\n3,"4"x\n5,"6"\n', [2, 6], ["wrong quotes"]),
        ('user,item\n1,"2\n3"\n5,6,7\n8,9\n', ["2\n3", "9"], ["another number of fields than the header's 2"]),
        (b"user,item\n1,2\n3,caf\xe9\n5,6\n", [2, 6], ["no UTF-8 text"]),
        ("user,item\n1,2\n,\n5,6\n", [2, 6], ["nothing in 'user', 'item'"]),
        ("user\titem\n1\t2\n3\n5\t6\t7\n8\t9\n", [2, 9], ["another number of fields than the header's 2"] * 2),
    ],
)
def test_torn_lines(tmp_path: Path, text: str | bytes, kept: list[object], kinds: list[str]) -> None:
    name = "a.tsv" if b"\t" in (text if isinstance(text, bytes) else text.encode()) else "a.csv"
    log = read_log(open_table(write(tmp_path, text, name)), reading=DROP)
    assert log.frame["item_id"].to_list() == kept
    assert log.invalid is not None
    assert log.invalid["fault"].to_list() == kinds


def test_lines_keep_their_numbers_beside_torn_ones(tmp_path: Path) -> None:
    file = write(tmp_path, "user,item,rating\n1,2,3\n\n1\n1,3,bad\n")
    with pytest.raises(InputError, match="first 'bad' in line 5"):
        read_log(open_table(file))
    log = read_log(open_table(file), reading=DROP)
    assert log.invalid is not None
    assert log.invalid["row"].to_list() == [4, 5]
    assert [path.name for path in tmp_path.iterdir()] == ["messy.csv"]


def test_faults_of_a_rule_and_of_a_frame() -> None:
    frame = {"who": ["a", None, "c", ""], "item": [1, 2, 3, 4], "watch": [1.0, 2.0, None, 4.0]}
    table, names = as_table(frame, "the frame"), ColumnNames(user="who")
    with pytest.raises(InputError, match=r"nothing in column 'who' \(2 rows, first row 1\), nothing in column 'watch'"):
        read_log(table, names, PositiveRule.parse("watch>0"))
    log = read_log(table, names, PositiveRule.parse("watch>0"), DROP)
    assert log.frame.rows() == [("a", 1)]
    assert log.invalid is not None
    assert [json.loads(content)["item"] for content in log.invalid["content"]] == [2, 3, 4]


def test_a_fault_is_counted_once(tmp_path: Path) -> None:
    file = write(tmp_path, "user,item\na,i1\nb,i2\n")
    with pytest.raises(
        InputError, match=r"^column 'item' has 'i1' in line 2 .* not a number \(and in 1 row more\); correct"
    ):
        read_log(open_table(file), None, PositiveRule.parse("item>3"))


def test_a_column_of_another_type_is_no_fault_of_rows() -> None:
    with pytest.raises(InputError, match="cannot be Float64"):
        read_log(as_table({"user": [1.5], "item": [1]}, "the frame"), reading=DROP)


def test_a_dataset_says_what_was_left_out(tmp_path: Path) -> None:
    from dpaa.data.dataset import Dataset

    frame = pl.DataFrame({"user_id": ["a", "a", None, "b"], "item_id": [1, 2, 3, 4]})
    with pytest.raises(InputError, match="leave such rows out with --drop-invalid"):
        Dataset.from_frame(frame)
    for split in (None, "random"):
        data = Dataset.from_frame(frame, drop_invalid=True, split=split)
        assert data.n_interactions == 3
        assert data.invalid is not None
        assert data.invalid.height == 1
        assert any("1 of 4 rows is invalid and left out" in note for note in data.notes)
