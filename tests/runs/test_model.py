from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaa.data.dataset import Dataset
from dpaa.errors import InputError
from dpaa.ranking.dial import dialled
from dpaa.runs.fit import fit
from dpaa.runs.model import Model, load


def scores_of(model: Model) -> np.ndarray:
    method = model.method
    return (method.user_embedding @ method.item_embedding.T).numpy()  # type: ignore[attr-defined]


def test_lists_are_the_best_unseen_items_in_order(model: Model) -> None:
    lists = model.recommend(k=7)
    assert lists.columns == ["user_id", "item_id", "score", "rank"]
    assert lists.height == 7 * len(model.user_ids)
    scores = scores_of(model)
    scores[model.train.user, model.train.item] = -np.inf
    users, items = model.user_ids.to_list(), model.item_ids.to_list()
    for row, user in enumerate(users[:20]):
        mine = lists.filter(pl.col("user_id") == user)
        best = np.argsort(-scores[row], kind="stable")[:7]
        assert mine["item_id"].to_list() == [items[i] for i in best]
        assert mine["rank"].to_list() == [1, 2, 3, 4, 5, 6, 7]
        np.testing.assert_allclose(mine["score"].to_numpy(), scores[row][best], rtol=1e-5)


def test_chosen_users_in_the_order_asked_for(model: Model) -> None:
    lists = model.recommend(["u0007", "u0004"], k=3)
    assert lists["user_id"].to_list() == ["u0007"] * 3 + ["u0004"] * 3
    everyone = model.recommend(k=3)
    assert lists.tail(3)["item_id"].to_list() == everyone.filter(pl.col("user_id") == "u0004")["item_id"].to_list()


def test_seen_items_come_back_only_when_asked_for(model: Model) -> None:
    user = model.user_ids[int(model.train.user[0])]
    taken = set(model.item_ids.gather(model.train.item[model.train.user == model.train.user[0]]).to_list())
    k = len(model.item_ids)
    assert not taken & set(model.recommend([user], k)["item_id"])
    assert len(model.recommend([user], k)) == k - len(taken)
    assert taken <= set(model.recommend([user], k, seen=True)["item_id"])


def test_allow_and_deny_lists(model: Model) -> None:
    allowed = ["i0003", "i0007", "i0011", "i0148"]
    found = set(model.recommend(["u0001"], 10, items=allowed, seen=True)["item_id"])
    assert found == set(allowed)
    assert "i0007" not in set(model.recommend(["u0001"], 10, items=allowed, exclude=["i0007"], seen=True)["item_id"])
    with pytest.raises(InputError, match="no item is left to recommend"):
        model.recommend(["u0001"], items=["i0007"], exclude=["i0007"])


def test_blocks_are_the_whole(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = model.recommend(k=4)
    monkeypatch.setattr("dpaa.ranking.rank.BLOCK_SCORES", 1000)
    blocks = list(model.recommend_blocks(k=4))
    assert len(blocks) > 10
    assert pl.concat(blocks).drop("score").equals(whole.drop("score"))


def test_newcomers_get_what_their_history_suggests(model: Model) -> None:
    found = model.recommend_for(["i0003", "i0009"], k=5)
    assert found.columns == ["item_id", "score", "rank"]
    assert not {"i0003", "i0009"} & set(found["item_id"])
    table = pl.DataFrame({"user_id": [7, 7, 8, 9], "item_id": ["i0003", "i0009", "i0001", "nowhere"]})
    blocks, notes = model.recommend_for_histories(table, 5)
    lists = pl.concat(list(blocks))
    mine = lists.filter(pl.col("user_id") == 7)
    assert mine["item_id"].to_list() == found["item_id"].to_list()
    np.testing.assert_allclose(mine["score"], found["score"], rtol=1e-4)
    assert lists.group_by("user_id", maintain_order=True).agg(pl.col("source").unique()).rows() == [
        (7, ["history"]),
        (8, ["history"]),
        (9, ["popularity"]),
    ]
    assert notes == [
        "1 history row names an item the model does not know; left out",
        "3 users have no training pairs: 2 get lists from their history, 1 get the popularity list (column 'source')",
    ]


def test_what_newcomers_cannot_ask(model: Model) -> None:
    with pytest.raises(InputError, match="the history is empty"):
        model.recommend_for([])
    with pytest.raises(InputError, match="not in the dataset"):
        model.recommend_for(["nowhere"], strict=True)
    nobody = model.recommend(["nobody"], k=5)
    assert model.recommend_for(["nowhere"], k=5)["item_id"].to_list() == nobody["item_id"].to_list()


def test_similar_items_by_cosine(model: Model) -> None:
    found = model.similar_items(["i0003", "i0009"], k=4)
    vectors = model.method.item_vectors().numpy()  # type: ignore[union-attr]
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    row = model.item_ids.to_list().index("i0009")
    cosine = unit @ unit[row]
    cosine[row] = -np.inf
    best = np.argsort(-cosine)[:4]
    mine = found.filter(pl.col("item_id") == "i0009")
    assert mine["similar_item_id"].to_list() == model.item_ids.gather(best).to_list()
    np.testing.assert_allclose(mine["score"].to_numpy(), cosine[best], rtol=1e-5)


@pytest.mark.parametrize("k", [0, -3])
def test_k_must_be_positive(model: Model, k: int) -> None:
    for call in (model.recommend, model.similar_items):
        with pytest.raises(InputError, match="k must be at least 1"):
            call(["i0003"] if call == model.similar_items else ["u0003"], k)


def test_candidates_are_what_is_recommended() -> None:
    pairs = {"user_id": [1, 1, 2, 3], "item_id": [10, 20, 20, 30]}
    data = Dataset.from_frame(pl.DataFrame(pairs), candidates=pl.DataFrame({"item_id": [10, 30]}), name="made")
    lists = fit(data, "most-popular").recommend(k=5)
    assert set(lists["item_id"]) == {10, 30}


@settings(max_examples=15)
@given(
    users=st.lists(st.text(min_size=1, max_size=5).filter(str.strip), min_size=2, max_size=6, unique=True),
    big=st.integers(2**40, 2**60),
)
def test_ids_go_in_and_come_out_as_they_are(users: list[str], big: int) -> None:
    items = [big + 3 * n for n in range(4)]
    frame = pl.DataFrame({"user_id": [u for u in users for _ in (0, 1)], "item_id": items[:2] * len(users)})
    extra = pl.DataFrame({"user_id": [users[0]], "item_id": [items[2]]})
    model = fit(Dataset.from_frame(pl.concat([frame, extra]), name="made"), "most-popular")
    lists = model.recommend(users, k=3, seen=True)
    assert set(lists["user_id"]) == set(users)
    assert set(lists["item_id"]) == set(items[:3])


@pytest.mark.parametrize("dial", [0.0, -0.7])
@pytest.mark.parametrize("every", [1, 2])
@pytest.mark.parametrize("exclude", [(), ["i0003", "i0007", "i0011"]])
def test_one_user_bit_for_bit_as_with_the_mask_of_all_pairs(
    model: Model, dial: float, every: int, exclude: list[str]
) -> None:
    """The slow way: the scores of this user over the allowed items, all training pairs hidden."""
    known = model.item_ids.to_list()
    items = known[::every] if every > 1 else None
    allowed = [known.index(item) for item in (known if items is None else items) if item not in exclude]
    columns = torch.tensor(allowed)
    for user in range(0, 60, 7):
        chosen = None if items is None and not exclude else columns
        scores = dialled(model.method, dial, chosen)(torch.tensor([user]))[0].numpy()
        hidden = np.zeros((len(model.user_ids), len(known)), dtype=bool)
        hidden[model.train.user, model.train.item] = True
        scores[hidden[user, allowed]] = -np.inf
        best = [place for place in np.argsort(-scores, kind="stable")[:9] if scores[place] > -np.inf]
        mine = model.recommend([model.user_ids[user]], 9, items=items, exclude=exclude, popularity_dial=dial)
        assert mine["item_id"].to_list() == [known[allowed[place]] for place in best]
        assert mine["score"].to_list() == scores[best].tolist()


def test_similar_items_bit_for_bit_as_when_normalised_each_time(model: Model) -> None:
    for item in (0, 17, 99):
        unit = torch.nn.functional.normalize(model.method.item_vectors(), dim=1)  # type: ignore[arg-type]
        cosine = (unit[[item]] @ unit.T)[0].numpy()
        cosine[item] = -np.inf
        best = np.argsort(-cosine, kind="stable")[:6]
        mine = model.similar_items([model.item_ids[item]], 6)
        assert mine["similar_item_id"].to_list() == model.item_ids.gather(best).to_list()
        assert mine["score"].to_list() == cosine[best].tolist()


def test_titles_stand_beside_the_items(tmp_path: Path) -> None:
    log = {"user_id": ["a", "a", "b", "c"], "item_id": [1, 2, 2, 3]}
    plain = Dataset.from_frame(log)
    named = plain.with_items({"item_id": [2, 3, 1], "title": ["Two", None, "One"], "genre": ["x", "y", "z"]})
    bare, model = (fit(data, "item-knn") for data in (plain, named))
    without, lists = bare.recommend(k=2), model.recommend(k=2)
    assert without.columns == ["user_id", "item_id", "score", "rank"]
    assert lists.columns == ["user_id", "item_id", "score", "rank", "title"]
    assert lists.drop("title").equals(without)
    titles = {1: "One", 2: "Two", 3: None}
    assert lists["title"].to_list() == [titles[item] for item in lists["item_id"]]
    assert lists.schema == pl.Schema(model.recommendation_schema)
    assert model.recommend([], k=2).schema == lists.schema
    model.save(tmp_path / "run")
    again = load(tmp_path / "run")
    assert again.items.equals(named.items)
    assert again.recommend(k=2).equals(lists)


def test_the_attributes_of_a_run_are_bound(tmp_path: Path) -> None:
    log = {"user_id": ["a", "a", "b"], "item_id": [1, 2, 2]}
    named = Dataset.from_frame(log, items={"item_id": [1, 2], "title": ["One", "Two"]})
    fit(named, "most-popular").save(tmp_path / "run")
    fit(Dataset.from_frame(log), "most-popular").save(tmp_path / "plain")
    file = tmp_path / "run" / "attributes.parquet"
    (tmp_path / "plain" / file.name).write_bytes(file.read_bytes())
    with pytest.raises(InputError, match="is not the file that was written there"):
        load(tmp_path / "plain")
    pl.read_parquet(file).with_columns(title=pl.lit("Free!")).write_parquet(file)
    with pytest.raises(InputError, match=r"attributes.parquet is not the file this run was written with"):
        load(tmp_path / "run")
    file.unlink()
    with pytest.raises(InputError, match="there is no file"):
        load(tmp_path / "run")
