"""Recommendation files: their order, their ids, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaa.errors import InputError
from dpaa.evaluation import read_recommendations

USERS = pl.Series("user_id", ["a", "b", "c"])
ITEMS = pl.Series("item_id", [10, 20, 30, 40])


def read(rows: Any, columns: list[str], k: int | None = None, **ids: pl.Series) -> Any:
    frame = pl.DataFrame(rows, schema=columns, orient="row")
    return read_recommendations(frame, ids.get("users", USERS), ids.get("items", ITEMS), k)


def test_score_orders_ties_by_lower_index_and_rank_goes_before_score() -> None:
    rows = [("a", 30, 0.5), ("a", 10, 0.5), ("a", 40, 0.9), ("a", 20, -1.0)]
    assert read(rows, ["user_id", "item_id", "score"]).items.tolist() == [[3, 0, 2, 1]]
    ranked = [(*row, rank) for row, rank in zip(rows, (1, 2, 3, 4), strict=True)]
    assert read(ranked, ["user_id", "item_id", "score", "rank"]).items.tolist() == [[2, 0, 3, 1]]


@pytest.mark.parametrize("dtype", [pl.Int64, pl.UInt64, pl.String])
def test_whole_numbers_that_floats_cannot_tell_apart_are_no_ties(dtype: Any, tmp_path: Path) -> None:
    scores = [2**53, 2**53 + 1, 2**53 + 3, 2**53 + 2]
    frame = pl.DataFrame({"user_id": "a", "item_id": [10, 20, 30, 40], "score": scores}).cast({"score": dtype})
    if dtype == pl.String:
        frame.write_csv(tmp_path / "recs.csv")
    recs = read_recommendations(tmp_path / "recs.csv" if dtype == pl.String else frame, USERS, ITEMS, with_scores=True)
    assert recs.items.tolist() == [[2, 3, 1, 0]]
    assert recs.scores is not None
    assert recs.scores.dtype == np.float64
    lowest = pl.DataFrame({"user_id": "a", "item_id": [10, 20], "score": [-(2**63), 5]})
    assert read_recommendations(lowest, USERS, ITEMS).items.tolist() == [[1, 0]]


def test_unknown_users_are_left_out_and_unknown_items_keep_their_places() -> None:
    rows = [("a", 99, 1), ("a", 10, 2), ("x", 10, 1), ("x", 20, 2), ("b", 98, 1)]
    recs = read(rows, ["user_id", "item_id", "rank"])
    assert recs.users.tolist() == [0, 1]
    assert recs.items.tolist() == [[-1, 0], [-1, -1]]
    (note,) = recs.notes
    assert "2 rows of users and 2 of items that are not in the data" in note


@pytest.mark.parametrize(
    ("users", "items", "content"),
    [
        (["1", "2"], [7, 8], "user_id,item_id\n2,8\n1,7\n"),  # whole numbers of a text file as text
        ([1, 2], ["007", "8"], "User,Item\n2,8\n1,007\n"),  # usual names, leading zeros
        ([2**63, 2**63 + 1], [-5, 3], f"user_id,item_id\n{2**63 + 1},3\n{2**63},-5\n"),
        (["a b", "ä,ö"], ["x", "y"], 'user_id,item_id\n"ä,ö",y\na b,x\n'),
    ],
)
def test_ids_of_any_type(tmp_path: Path, users: list[Any], items: list[Any], content: str) -> None:
    file = tmp_path / "recs.csv"
    file.write_text(content, encoding="utf-8")
    user_ids = pl.Series(users, dtype=pl.UInt64 if users[0] == 2**63 else None)
    recs = read_recommendations(file, user_ids, pl.Series(items))
    assert recs.name == "recs.csv"
    assert recs.items.tolist() == [[0], [1]]


def test_list_form(tmp_path: Path) -> None:
    file = tmp_path / "recs.txt"
    file.write_text("b 30 10\na 40\n")
    assert read_recommendations(file, USERS, ITEMS).items.tolist() == [[3, -1], [2, 0]]


@pytest.mark.parametrize(
    ("rows", "columns", "says"),
    [
        ([(1, 10)], ["who", "item_id"], r"no column 'user_id' \(it has 'who', 'item_id'\)"),
        ([("a", 10)], ["user_id", "what"], "no column 'item_id'"),
        ([(None, 10), ("a", 10)], ["user_id", "item_id"], "nothing in column 'user_id'"),
        ([("a", 10, 1), ("a", 20, None)], ["user_id", "item_id", "rank"], "nothing in column 'rank'"),
        (
            [("a", 10, 1), ("a", 20, 1)],
            ["user_id", "item_id", "rank"],
            "row 1 of .* has rank 1 of user 'a' a second",
        ),
        ([("a", 10, float("nan"))], ["user_id", "item_id", "score"], "no number in column 'score'"),
        ([("a", 10), ("b", 10), ("a", 10)], ["user_id", "item_id"], "row 2 of .* has item 10 of user 'a' a second"),
        ([("a", 99), ("a", 10), ("a", 99)], ["user_id", "item_id"], "row 2 of .* has item 99 of user 'a' a second"),
        ([(1, 10)], ["user_id", "item_id"], "the users in .* are integers .*, those of the dataset are text"),
        ([("x", 10)], ["user_id", "item_id"], "no user in .* is in the dataset"),
        ([("a", 99)], ["user_id", "item_id"], "no item in .* is in the dataset"),
        ([("a", 1.5)], ["user_id", "item_id"], "cannot be DOUBLE"),
    ],
)
def test_wrong_tables_are_refused(rows: Any, columns: list[str], says: str) -> None:
    with pytest.raises(InputError, match=says):
        read(rows, columns)


@pytest.mark.parametrize("form", ["list column", "commas"])
def test_lists_with_a_row_for_each_user_are_read(form: str, tmp_path: Path) -> None:
    frame = pl.DataFrame({"user_id": ["a", "b"], "items": [[30, 10], [20, 30]]})
    file = tmp_path / ("recs.parquet" if form == "list column" else "recs.csv")
    if form == "list column":
        frame.write_parquet(file)
    else:
        frame.with_columns(pl.col("items").cast(pl.List(pl.String)).list.join(",")).write_csv(file)
    recs = read_recommendations(file, pl.Series("user_id", ["a", "b"]), pl.Series("item_id", [10, 20, 30]))
    assert recs.items.tolist() == [[2, 0], [1, 2]]
    assert not recs.notes


@given(
    st.dictionaries(
        st.integers(0, 9), st.lists(st.integers(0, 14), min_size=1, max_size=8, unique=True), min_size=1, max_size=8
    ),
    st.sampled_from(["rank", "score"]),
    st.integers(1, 10),
    st.randoms(),
)
def test_any_lists_come_back(lists: dict[int, list[int]], by: str, k: int, random: Any) -> None:
    rows = [(u, i, place + 1 if by == "rank" else -place) for u, row in lists.items() for place, i in enumerate(row)]
    random.shuffle(rows)
    ids = pl.Series(range(10)), pl.Series(range(15))
    recs = read_recommendations(pl.DataFrame(rows, schema=["user_id", "item_id", by], orient="row"), *ids, k)
    assert recs.users.tolist() == sorted(lists)
    expected = [(lists[user] + [-1] * k)[:k] for user in sorted(lists)]
    assert recs.items.tolist() == expected
