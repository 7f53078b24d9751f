"""Tomorrow's data: who is known keeps the vector, who is new begins at the neighbours', and it can be resumed."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

import dpaa
from dpaa import Dataset, InputError, Model, load
from dpaa.data.ids import SPLITS, look_up
from dpaa.data.pairs import Pairs
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods.base import Method
from dpaa.runs import RunFolder, fit_into, fit_method, make_method
from dpaa.runs._warm_start import SHRINK, _begin_at_neighbours, _carried_parameters, warm_start
from tests.conftest import TINY
from tests.trainings import interrupted, resplit, same_state

SHORT = TINY | {"epochs": 4}


@pytest.fixture(scope="module")
def yesterday(small_world: Dataset) -> Dataset:
    """The world before some users and items came."""
    late_users, late_items = small_world.user_ids.tail(30), small_world.item_ids.tail(15)
    late = pl.col("user_id").is_in(late_users.implode()) | pl.col("item_id").is_in(late_items.implode())
    parts = {split: small_world.frame(split).filter(~late) for split in ("train", "valid", "test")}
    return Dataset.of(parts, name="yesterday", about={"validation_exposure": "unbiased"})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def before(yesterday: Dataset) -> Model:
    return dpaa.fit(yesterday, "lightgcn", **SHORT)


def test_known_rows_stay_and_new_ones_begin_at_their_neighbours(small_world: Dataset, before: Model) -> None:
    method = make_method(small_world, "lightgcn", SHORT)
    start = warm_start(before, small_world, method)
    users, items = torch.split(start.table, [small_world.n_users, small_world.n_items])
    for ids, now, rows, old in (
        (before.user_ids, small_world.user_ids, users, before.method.tables.user_ego),
        (before.item_ids, small_world.item_ids, items, before.method.tables.item_ego),
    ):
        place = torch.from_numpy(np.searchsorted(now.to_numpy(), ids.to_numpy()))
        assert torch.equal(rows[place], SHRINK * old)
    train = small_world.frame("train")
    known = train.filter(pl.col("item_id").is_in(before.item_ids.implode()))
    user = next(one for one in small_world.user_ids.tail(30) if one in known["user_id"])
    taken = look_up(known.filter(pl.col("user_id") == user)["item_id"], small_world.item_ids, "item")
    degree = method.graph.item_degree[taken]
    slow = sum(items[item].double() / float(degree[place]) ** 0.5 for place, item in enumerate(taken))
    slow = slow / slow.norm() * SHRINK * before.method.tables.user_ego.norm(dim=1).mean()
    found = users[look_up([user], small_world.user_ids, "user")[0]]
    np.testing.assert_allclose(found.numpy(), slow.numpy(), rtol=1e-4, atol=1e-6)
    told = start.origin["warm_start"]
    for side, n in (("users", small_world.n_users), ("items", small_world.n_items)):
        assert sum(told[side].values()) == n
    assert told["users"]["kept"] == len(before.user_ids)
    assert told["users"]["from_neighbours"] > 0


def test_a_new_item_of_new_users_alone_is_reached_too() -> None:
    graph = BipartiteGraph.from_pairs(Pairs.of([0, 1, 1, 2], [0, 0, 1, 1]), 4, 3)  # u1, u2, u3 and i1, i2 are new
    table, known = torch.zeros(7, 2), np.array([True, False, False, False, True, False, False])
    table[0], table[4] = torch.tensor([3.0, 4.0]), torch.tensor([0.0, 2.0])
    have = _begin_at_neighbours(graph, table, known)
    assert have.tolist() == [True, True, True, False, True, True, False]
    assert table[1].tolist() == pytest.approx([0, 5])  # the length of known users, the direction of item 0
    assert table[5].tolist() == pytest.approx([0, 2])
    assert table[2].tolist() == pytest.approx([0, 5])


@pytest.mark.parametrize("name", ["macr", "ncl", "dpaa", "ease"])
def test_every_kind_of_method_starts_warm(small_world: Dataset, yesterday: Dataset, name: str) -> None:
    how = {"epochs": 1, "embedding_size": 4, "threads": 1} if name != "ease" else {}
    old = dpaa.fit(yesterday, name, **how)
    model = dpaa.fit(small_world, warm_start=old)
    assert model.method.name == name
    assert model.method.get_params({"threads"}) == old.method.get_params({"threads"})
    if name != "ease":
        assert model.manifest["warm_start"]["method"] == name
        kept = old.method.state()
        carried = _carried_parameters(model.method, old.method)  # type: ignore[arg-type]
        assert all(torch.equal(carried[part], kept[part]) for part in carried)
        assert bool(carried) == (name == "macr")
    assert len(model.recommend(small_world.user_ids.tail(3), k=5)) == 15


def test_no_epoch_need_be_better_than_the_start(small_world: Dataset, before: Model) -> None:
    still = make_method(small_world, "lightgcn", SHORT | {"epochs": 2, "learning_rate": 1e-12})
    model = fit_method(still, small_world, warm_start=before)
    assert model.manifest["training"]["best_epoch"] == 0
    start = warm_start(before, small_world, model.method)  # type: ignore[arg-type]
    assert torch.equal(model.method.tables.ego.rows(), start.table)  # type: ignore[attr-defined]


def test_a_stopped_warm_start_goes_on_to_the_same_bits(small_world: Dataset, before: Model, tmp_path: Path) -> None:
    def make() -> Method:
        return make_method(small_world, "lightgcn", SHORT)

    whole = fit_into(tmp_path / "whole", small_world, make(), warm_start=before)
    interrupted(2, tmp_path / "run", small_world, make(), warm_start=before)
    assert same_state(fit_into(tmp_path / "run", small_world, make(), warm_start=before, resume=True), whole)
    interrupted(1, tmp_path / "other", small_world, make(), warm_start=before)
    with pytest.raises(InputError, match="the checkpoint was made with another start"):
        fit_into(tmp_path / "other", small_world, make(), warm_start=whole, resume=True)


def test_what_cannot_be_started_from(small_world: Dataset, before: Model) -> None:
    closed = dpaa.fit(small_world, "ease")
    with pytest.raises(InputError, match="is a run of ease, which has no trained vectors to start from"):
        dpaa.fit(small_world, "lightgcn", warm_start=closed)
    strangers = Dataset.from_frame(pl.DataFrame({"user_id": ["a", "a", "b"], "item_id": ["x", "y", "x"]}))
    with pytest.raises(InputError, match="knows no user and no item of frame"):
        dpaa.fit(strangers, warm_start=before)
    with pytest.raises(InputError, match="warm_start must be a Model"):
        dpaa.fit(small_world, warm_start=3)  # type: ignore[arg-type]


def train(folder: Path, data: Dataset, epochs: int) -> Model:
    return fit_into(folder, data, make_method(data, "lightgcn", TINY | {"epochs": epochs}), resume=True)


def test_a_stop_on_the_way_leaves_the_finished_run_and_goes_on(small_world: Dataset, tmp_path: Path) -> None:
    train(tmp_path / "run", small_world, 2)
    before = load(tmp_path / "run")
    longer = make_method(small_world, "lightgcn", TINY | {"epochs": 6})
    interrupted(5, tmp_path / "run", small_world, longer, resume=True)
    assert same_state(load(tmp_path / "run"), before)
    model = train(tmp_path / "run", small_world, 6)
    assert [line["epoch"] for line in RunFolder(tmp_path / "run").history()] == [1, 2, 3, 4, 5, 6]
    train(tmp_path / "other", small_world, 2)
    assert same_state(train(tmp_path / "other", small_world, 6), model)


def test_a_run_is_not_trained_further_on_another_dataset(small_world: Dataset, tmp_path: Path) -> None:
    train(tmp_path / "run", small_world, 3)
    other = resplit(small_world, "other", **{split: small_world.frame(split).head(300) for split in SPLITS})
    with pytest.raises(InputError, match=r"trained on another dataset than other; .* --warm-start"):
        train(tmp_path / "run", other, 9)
