"""Lists for anybody: who gets them from where, in the order asked for, and within which limits."""

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import dpaa
from dpaa.data.shards import Shard
from dpaa.ranking.dial import dialled
from tests.conftest import TINY


@pytest.fixture(scope="module")
def model(small_world: dpaa.Dataset) -> dpaa.Model:
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


@pytest.mark.parametrize("kappa", [0.0, -0.4])
def test_pairs_are_scored_as_in_lists(model: dpaa.Model, kappa: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpaa.ranking.rank.BLOCK_SCORES", 3 * len(model.item_ids))
    recs = model.recommend(k=4, popularity_dial=kappa).sample(fraction=1.0, shuffle=True, seed=0)
    scored = model.score(recs, popularity_dial=kappa)
    assert scored.columns == ["user_id", "item_id", "score"]
    assert scored.select("user_id", "item_id").equals(recs.select("user_id", "item_id"))
    np.testing.assert_allclose(scored["score"], recs["score"], rtol=1e-5)
    strange = {"user_id": ["nobody", model.user_ids[0]], "item_id": [model.item_ids[0], "nothing"]}
    assert model.score(strange)["score"].to_list() == [None, None]
    with pytest.raises(dpaa.InputError, match="pairs have no column 'item_id'"):
        model.score({"user_id": ["u1"]})


def test_everybody_in_the_order_asked_for(model: dpaa.Model, monkeypatch: pytest.MonkeyPatch) -> None:
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
        "4 users have no training pairs: lists from the history for 1, the popularity list for 3, such as 'nobody' "
        "(column 'source')"
    ]


def test_unknown_ids_are_counted(model: dpaa.Model) -> None:
    users, some = model.user_ids.head(2), model.item_ids.head(30).to_list()
    found = model.lists(users, 5, items=[*some, "x", "y"], exclude=["z", some[0]])
    assert found.notes == [
        "1 item is not known to the model and left out ('z')",
        "2 items are not known to the model and left out ('x', 'y')",
    ]
    assert set(pl.concat(list(found.blocks))["item_id"]) <= set(some[1:])
    with pytest.raises(TypeError, match="no option 'colour'"):
        model.recommend(users, colour="red")  # type: ignore[call-arg]


@pytest.mark.parametrize("seen", [False, True])
def test_single_users_exclusions(model: dpaa.Model, seen: bool) -> None:
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


def test_limits_by_columns_of_the_items(model: dpaa.Model) -> None:
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
    with pytest.raises(dpaa.InputError, match="at most of column 'colour' must be at least 1"):
        model.recommend(asked, at_most={"colour": 0})


@pytest.mark.parametrize("asked", ["all", "some unknown", "histories"])
@pytest.mark.parametrize("of", [1, 3, 7])
def test_shards_together_are_the_whole(asked: str, of: int, model: dpaa.Model, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_what_newcomers_cannot_ask(model: dpaa.Model) -> None:
    with pytest.raises(dpaa.InputError, match="the history is empty"):
        model.recommend_for([])
    nobody = model.recommend(["nobody"], k=5)
    assert model.recommend_for(["nowhere"], k=5)["item_id"].to_list() == nobody["item_id"].to_list()


@settings(max_examples=15)
@given(
    users=st.lists(st.text(min_size=1, max_size=5).filter(str.strip), min_size=2, max_size=6, unique=True),
    big=st.integers(2**40, 2**60),
)
def test_ids_go_in_and_come_out_as_they_are(users: list[str], big: int) -> None:
    items = [big + 3 * n for n in range(4)]
    frame = pl.DataFrame({"user_id": [u for u in users for _ in (0, 1)], "item_id": items[:2] * len(users)})
    extra = pl.DataFrame({"user_id": [users[0]], "item_id": [items[2]]})
    model = dpaa.fit(dpaa.Dataset.from_frame(pl.concat([frame, extra]), name="made"), "most-popular")
    lists = model.recommend(users, k=3, seen=True)
    assert set(lists["user_id"]) == set(users)
    assert set(lists["item_id"]) == set(items[:3])


@pytest.mark.parametrize("dial", [0.0, -0.7])
@pytest.mark.parametrize("every", [1, 2])
@pytest.mark.parametrize("exclude", [(), ["i0003", "i0007", "i0011"]])
def test_one_user_as_with_the_mask_of_all_pairs(model: dpaa.Model, dial: float, every: int, exclude: list[str]) -> None:
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


def test_similar_items_bit_for_bit_as_when_normalised_each_time(model: dpaa.Model) -> None:
    for item in (0, 17, 99):
        unit = torch.nn.functional.normalize(model.method.item_vectors(), dim=1)  # type: ignore[arg-type]
        cosine = (unit[[item]] @ unit.T)[0].numpy()
        cosine[item] = -np.inf
        best = np.argsort(-cosine, kind="stable")[:6]
        mine = model.similar_items([model.item_ids[item]], 6)
        assert mine["similar_item_id"].to_list() == model.item_ids.gather(best).to_list()
        assert mine["score"].to_list() == cosine[best].tolist()
