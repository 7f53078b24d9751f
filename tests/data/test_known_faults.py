"""Faults of reading that are known and not mended: each test asserts what is right, and fails today.

Strict: whoever mends one removes its mark. All go through the command or the public API, whatever reads the files.
"""

from __future__ import annotations

import unicodedata
from pathlib import Path

import polars as pl
import pytest

from dpaa.data.dataset import read_dataset
from dpaa.evaluation import read_recommendations
from tests.command import Said, dpaa_ok, run_dpaa

USERS, ITEMS = pl.Series("user_id", ["a", "b"]), pl.Series("item_id", [10, 20, 30])
LISTS = [[2, 0], [1, 2]]


def prepare(folder: Path, rows: str, *words: object) -> Said:
    """`dpaa data log` of a CSV file."""
    (folder / "log.csv").write_text(rows, encoding="utf-8")
    return run_dpaa("data", "log", folder / "log.csv", *words, "--out", folder / "data")


@pytest.mark.xfail(strict=True, reason="times are kept in microseconds, or in float64")
@pytest.mark.parametrize("second", ["2024-05-01T10:00:00.00000000{}Z", "1714557600.00000000{}"], ids=["ISO", "seconds"])
def test_nine_digits_of_a_second_are_kept(second: str, tmp_path: Path) -> None:
    rows = "".join(f"1,{item},{second.format(digit)}\n" for item, digit in ((5, 3), (6, 2), (7, 1)))
    assert prepare(tmp_path, "user_id,item_id,timestamp\n" + rows, "--split", "leave-last").code == 0
    splits = [read_dataset(tmp_path / "data").frame(name)["item_id"].to_list() for name in ("train", "valid", "test")]  # type: ignore[arg-type]
    assert splits == [[7], [6], [5]]


@pytest.mark.xfail(strict=True, reason="the comma is taken for a decimal comma: 1.0")
@pytest.mark.parametrize("number", ["1,000", "12,000"])
def test_a_thousands_separator_is_no_decimal_comma(number: str, tmp_path: Path) -> None:
    said = prepare(tmp_path, f'user_id,item_id,rating\n1,5,3\n1,6,"{number}"\n2,5,4\n')
    assert said.code == 2
    words = " ".join(said.err.split())
    assert repr(number) in words
    assert "line 3" in words
    assert "not a number" in words


@pytest.mark.xfail(strict=True, reason="nothing is said")
@pytest.mark.parametrize(
    ("rows", "word"),
    [
        ("1,5,2024-05-01T10:00:00Z\n1,6,2024-05-01T10:00:00\n", "zone"),
        ("1,5,1714557600\n1,6,1714557600000\n", "milliseconds"),
        ("1,5,1714557600\n1.0,6,1714557600\n", "'1.0'"),
        (f"{unicodedata.normalize('NFC', 'é')},5,1\n{unicodedata.normalize('NFD', 'é')},6,2\n", "NFC"),
    ],
    ids=["times with and without a zone", "seconds and milliseconds", "1 and 1.0", "composed and decomposed ids"],
)
def test_values_of_two_kinds_in_one_column_are_noted(rows: str, word: str, tmp_path: Path) -> None:
    said = prepare(tmp_path, "user_id,item_id,timestamp\n" + rows)
    assert said.code == 0
    assert word in said.err
    assert any(word in note for note in read_dataset(tmp_path / "data").notes)


@pytest.mark.xfail(strict=True, reason="a cell of a token_seq column is one value, spaces and all")
def test_words_of_a_token_seq_column_are_single_values(tmp_path: Path) -> None:
    (tmp_path / "log.inter").write_text("user_id:token\titem_id:token\n1\t5\n1\t6\n2\t6\n2\t7\n3\t5\n3\t7\n")
    items = (
        "item_id:token\tclass:token_seq\tstudio:token\n5\tComedy Drama\tTwo Cats\n6\tDrama\tTwo Cats\n7\tComedy\tCats\n"
    )
    (tmp_path / "log.item").write_text(items)
    data, run, recs = (tmp_path / name for name in ("data", "run", "recs.csv"))
    words = ("--items", tmp_path / "log.item", "--valid", 0, "--test", 0, "--out", data)
    dpaa_ok("data", "log", tmp_path / "log.inter", *words)
    dpaa_ok("train", data, "--method", "most-popular", "--out", run)
    dpaa_ok("recommend", run, "--only", "studio=Two Cats", "--seen", "--out", recs)  # a token column is not split
    assert set(pl.read_csv(recs)["item_id"]) == {5, 6}
    dpaa_ok("recommend", run, "--only", "class=Comedy", "--seen", "--out", recs, "--overwrite")
    assert set(pl.read_csv(recs)["item_id"]) == {5, 7}


@pytest.mark.xfail(strict=True, reason="recommendation files need a row for each item")
@pytest.mark.parametrize("form", ["list column", "columns", "commas"])
def test_lists_with_a_row_for_each_user_are_read(form: str, tmp_path: Path) -> None:
    frame = pl.DataFrame({"user_id": ["a", "b"], "items": [[30, 10], [20, 30]]})
    file = tmp_path / ("recs.parquet" if form == "list column" else "recs.csv")
    if form == "list column":
        frame.write_parquet(file)
    elif form == "columns":
        wide = [pl.col("items").list.get(place).alias(f"rec_{place + 1}") for place in range(2)]
        frame.select("user_id", *wide).write_csv(file)
    else:
        frame.with_columns(pl.col("items").cast(pl.List(pl.String)).list.join(",")).write_csv(file)
    recs = read_recommendations(file, USERS, ITEMS)
    assert recs.users.tolist() == [0, 1]
    assert recs.items.tolist() == LISTS
