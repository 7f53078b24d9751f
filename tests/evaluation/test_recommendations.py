"""Recommendation files: their order, their ids, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

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
