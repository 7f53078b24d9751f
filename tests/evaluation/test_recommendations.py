"""Recommendation files: their order, their ids, and what is wrong with them."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from dpaa import Dataset, fit
from dpaa.evaluation import read_recommendations
from dpaa.evaluation.recommendations import rerank_file
from dpaa.ranking import RERANKERS, Reranker
from dpaa.ranking.rerankers.fa_ir import FAIR

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


@pytest.fixture(scope="module")
def lists(small_world: Dataset) -> pl.DataFrame:
    return fit(small_world, "item-knn").recommend(k=40)


def new_lists(recs: object, data: Dataset, reranker: Reranker, k: int = 10) -> pl.DataFrame:
    return pl.concat(list(rerank_file(recs, data, reranker, k)[0]))


@pytest.mark.parametrize("name", [name for name in RERANKERS.built_in if name != "dial"])
def test_a_file_is_re_ranked_as_its_model_would_be(name: str, small_world: Dataset) -> None:
    reranker = RERANKERS[name](strength=0.6)  # type: ignore[call-arg]
    model = fit(small_world, "item-knn")
    expected = model.recommend(k=10, rerank=reranker)
    everything = model.recommend(k=small_world.n_items)
    found = new_lists(everything.sample(fraction=1, shuffle=True, seed=0), small_world, reranker)
    for column in ("user_id", "item_id", "rank"):
        assert found[column].equals(expected[column]), column
    assert found.schema == expected.schema


@pytest.mark.parametrize("scores", ["none", "rising"])
def test_ranks_are_scores_where_none_fall(scores: str, lists: pl.DataFrame, small_world: Dataset) -> None:
    given = lists.drop("score") if scores == "none" else lists.with_columns(-pl.col("score"))
    blocks, notes = rerank_file(given, small_world, FAIR(strength=0.9), 10)
    assert any("ranks are used as scores" in note for note in notes)
    found = pl.concat(list(blocks))
    assert found["score"].max() == 40
    scored = new_lists(lists, small_world, FAIR(strength=0.9))
    assert found["item_id"].equals(scored["item_id"])  # what FA*IR takes depends on the order alone
