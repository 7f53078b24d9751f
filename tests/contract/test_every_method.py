"""What every method in METHODS keeps, unasked: a new one is met here the day it joins the list."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from dpaa.data.dataset import Dataset
from dpaa.evaluation.evaluator import Evaluator
from dpaa.methods import METHODS
from dpaa.runs.fit import evaluate, fit
from dpaa.runs.folder import load

every_method = pytest.mark.parametrize("name", METHODS)


def quick(name: str) -> dict[str, Any]:
    """Settings that train in a second and still learn."""
    if not METHODS[name].iterative:
        return {}
    return {"embedding_size": 32, "layers": 2, "epochs": 25, "patience": 25, "learning_rate": 0.02, "batch_size": 1024}


@every_method
def test_same_seed_same_bits(name: str, small_world: Dataset) -> None:
    lists = [
        fit(small_world, name, seed=4, **(quick(name) | ({"epochs": 3} if quick(name) else {}))).recommend(k=20)
        for _ in (0, 1)
    ]
    assert lists[0].equals(lists[1])


@every_method
def test_clearly_better_than_chance(name: str, small_world: Dataset) -> None:
    model = fit(small_world, name, **quick(name))
    evaluator = Evaluator(small_world, 20)
    rng = np.random.default_rng(0)
    order = np.argsort(rng.random((len(evaluator.users), small_world.n_items)), axis=1)[:, :20]
    chance = evaluator.evaluate_lists(order).metrics["recall@20"]
    assert evaluate(model, small_world).metrics["recall@20"] > 1.2 * chance


@every_method
def test_save_load_recommend_and_fold_in(name: str, small_world: Dataset, tmp_path: Path) -> None:
    settings = quick(name) | ({"epochs": 3} if quick(name) else {})
    model = fit(small_world, name, **settings)
    model.save(tmp_path / "run")
    again = load(tmp_path / "run")
    assert again.recommend(k=10).equals(model.recommend(k=10))
    history = small_world.item_ids.head(3)
    assert again.recommend_for(history, k=10).equals(model.recommend_for(history, k=10))
    assert not set(history) & set(again.recommend_for(history, k=10)["item_id"])


@every_method
def test_cold_items_lonely_users_and_one_item_users(name: str) -> None:
    train = pl.DataFrame({"user_id": [1, 1, 1, 2, 3, 3], "item_id": [1, 2, 3, 1, 2, 4]})
    test = pl.DataFrame({"user_id": [4, 2], "item_id": [5, 3]})  # user 4 and item 5 are not in training
    data = Dataset.from_frame(train, valid=test, test=test, name="edge")
    settings = quick(name) | ({"epochs": 2} if quick(name) else {})
    lists = fit(data, name, **settings).recommend(k=5)
    assert set(lists["user_id"]) == {1, 2, 3, 4}
    assert lists["score"].is_finite().all()
    assert lists.filter(pl.col("user_id") == 4).height == 5
