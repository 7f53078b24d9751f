"""Lists for anybody: who gets them from where, in the order asked for, and within which limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import dpaa
from dpaa.data.dataset import Dataset
from dpaa.data.shards import Shard
from dpaa.errors import InputError
from dpaa.runs.model import Model
from tests.conftest import TINY


@pytest.fixture(scope="module")
def model(small_world: Dataset) -> Model:
    """Its items have a colour or none, sizes, and several tags."""
    n = small_world.n_items
    rng = np.random.default_rng(0)
    items = pl.DataFrame(
        {
            "item_id": small_world.item_ids,
            "colour": [["red", "blue", "green", None][one] for one in rng.integers(0, 4, n)],
            "size": rng.integers(0, 40, n),
            "in_stock": rng.random(n) < 0.4,
            "tags": ["|".join(f"t{tag}" for tag in rng.choice(5, rng.integers(1, 3), replace=False)) for _ in range(n)],
        }
    )
    return dpaa.fit(small_world.with_items(items), "lightgcn", **TINY)


def lists(frame: pl.DataFrame) -> dict[object, list[str]]:
    found = frame.group_by("user_id", maintain_order=True).agg("item_id")
    return dict(zip(found["user_id"], found["item_id"].to_list(), strict=True))


def test_everybody_in_the_order_asked_for(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpaa.runs.lists.BLOCK_USERS", 3)
    known = model.user_ids.head(5).to_list()
    asked = ["nobody", known[3], "new", known[1], "other", known[0], "nobody", known[4]]
    histories = pl.DataFrame(
        {"user_id": ["new", "new", known[1], "else"], "item_id": ["i0003", "i0009", "i0001", "i1"]}
    )
    found = model.recommend(asked, 4, histories=histories)
    assert found["user_id"].to_list() == [one for one in asked for _ in range(4)]
    source = {"new": "history"} | dict.fromkeys(("nobody", "other"), "popularity") | dict.fromkeys(known, "model")
    assert found["source"].to_list() == [source[one] for one in found["user_id"]]
    mine = lists(found.unique(["user_id", "rank"], maintain_order=True).sort("user_id", "rank"))
    assert mine["nobody"] == mine["other"]
    assert mine["new"] == model.recommend_for(["i0003", "i0009"], 4)["item_id"].to_list()
    plain = model.recommend(known, 4)
    assert plain.columns == ["user_id", "item_id", "score", "rank"]
    assert {one: mine[one] for one in (known[3], known[1])} == {one: lists(plain)[one] for one in (known[3], known[1])}
    notes = model.lists(asked, 4, histories=histories).notes
    assert notes == [
        "1 history row names an item the model does not know; left out",
        "4 users have no training pairs: 1 get lists from their history, 3 get the popularity list (column 'source')",
    ]


def test_unknown_ids_are_counted_or_with_strict_refused(model: Model) -> None:
    users, some = model.user_ids.head(2), model.item_ids.head(30).to_list()
    found = model.lists(users, 5, items=[*some, "x", "y"], exclude=["z", some[0]])
    assert found.notes == [
        "1 item to exclude is not known to the model and left out ('z')",
        "2 items to allow are not known to the model and left out ('x', 'y')",
    ]
    assert set(pl.concat(list(found.blocks))["item_id"]) <= set(some[1:])
    for how in ({"items": ["x"]}, {"exclude": ["z"]}):
        with pytest.raises(InputError, match="not in the dataset"):
            model.recommend(users, strict=True, **how)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="1 of the user ids given is not in the dataset"):
        model.recommend(["nobody"], strict=True)
    with pytest.raises(InputError, match="no item is left"):
        model.recommend(users, items=["x", "y"])
    with pytest.raises(InputError, match="user ids are text"):
        model.recommend([7])


@pytest.mark.parametrize("seen", [False, True])
def test_single_users_exclusions(model: Model, seen: bool) -> None:
    known = model.user_ids.head(3).to_list()
    asked = [known[0], "nobody", known[1], "new", "other", known[0]]
    histories = pl.DataFrame({"user_id": ["new"], "item_id": ["i0003"]})
    plain = lists(model.recommend(asked[:5], 12, histories=histories, seen=seen))
    rows = [(one, item) for one in (known[0], "nobody", "new") for item in plain[one][:3]]
    pairs = pl.DataFrame([*rows, ("somebody", "i0001"), ("new", "nowhere")], ["user_id", "item_id"], orient="row")
    found = model.lists(asked, 5, histories=histories, seen=seen, exclude_pairs=pairs)
    frame = pl.concat(list(found.blocks))
    got = lists(frame[:25])
    for one in asked[:5]:
        assert got[one] == plain[one][3:8] if one in (known[0], "nobody", "new") else plain[one][:5]
    assert lists(frame[25:])[known[0]] == got[known[0]]
    assert "1 row to exclude names an item the model does not know; left out" in found.notes


def test_limits_by_columns_of_the_items(model: Model) -> None:
    columns = model.items.rows_by_key("item_id", named=True, unique=True)
    asked = [*model.user_ids.head(40), "nobody"]
    found = lists(model.recommend(asked, 8, at_most={"colour": 2}, only={"in_stock": True}))
    for items in found.values():
        colours = [columns[one]["colour"] for one in items if columns[one]["colour"]]
        assert max(map(colours.count, colours), default=0) <= 2
        assert all(columns[one]["in_stock"] for one in items)
    varied = lists(model.recommend(asked, 8, at_least={"size": 8}, only={"colour": ["red", "blue"]}))
    for items in varied.values():
        assert len({columns[one]["size"] for one in items}) == 8
        assert {columns[one]["colour"] for one in items} <= {"red", "blue"}
    tagged = lists(model.recommend(asked, 6, at_most={"tags": 2}, rerank="xquad"))
    for items in tagged.values():
        tags = [tag for one in items for tag in columns[one]["tags"].split("|")]
        assert max(map(tags.count, tags)) <= 2
    with pytest.raises(InputError, match="the items have no column 'smell'; they have"):
        model.recommend(asked, at_most={"smell": 1})
    with pytest.raises(InputError, match="no item has 'purple' in column 'colour'"):
        model.recommend(asked, only={"colour": "purple"})
    with pytest.raises(InputError, match="at most of column 'colour' must be at least 1"):
        model.recommend(asked, at_most={"colour": 0})
    with pytest.raises(InputError, match="nothing is known of the items"):
        replace(model, attributes=None).recommend(asked, at_most={"colour": 1})


@pytest.mark.parametrize("asked", ["all", "some unknown", "histories"])
@pytest.mark.parametrize("of", [1, 3, 7])
def test_shards_together_are_the_whole_bit_by_bit(
    asked: str, of: int, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpaa.ranking.rank.BLOCK_SCORES", 7 * len(model.item_ids))
    monkeypatch.setattr("dpaa.runs.lists.BLOCK_USERS", 5)
    known, how = model.user_ids.to_list(), {}
    users = None if asked == "all" else [one for user in known[:40] for one in (user, f"new {user}")]
    if asked == "histories":
        owners = [f"new {user}" for user in known[:25]]
        how = {"histories": pl.DataFrame({"user_id": owners, "item_id": model.item_ids.head(5).to_list() * 5})}
    whole = model.lists(users, 4, at_most={"colour": 2}, **how)  # type: ignore[arg-type]
    parts = [model.lists(users, 4, at_most={"colour": 2}, shard=Shard(one, of), **how) for one in range(1, of + 1)]  # type: ignore[arg-type]
    assert {tuple(part.schema) for part in parts} == {tuple(whole.schema)}
    found = pl.concat([block for part in parts for block in part.blocks])
    assert found.equals(pl.concat(list(whole.blocks)))
