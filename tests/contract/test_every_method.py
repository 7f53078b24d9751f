"""What every method in METHODS keeps, unasked: a new one is met here the day it joins the list."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

from dpaa import METHODS, Dataset, Model, load
from dpaa.data.pairs import Pairs
from dpaa.errors import DivergedError
from dpaa.evaluation.evaluator import Evaluator
from dpaa.methods.base import Histories, Randomised
from dpaa.methods.graph_method import GraphMethod
from dpaa.runs.fit import Callbacks, evaluate, fit, fit_into, make_method
from dpaa.training.trainer import Interrupted

needs_extra = pytest.mark.skipif(find_spec("implicit") is None, reason="the extra `references` is not installed")
every_method = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=needs_extra) if name == "als" else name for name in METHODS]
)
TRAINED = [name for name in METHODS if issubclass(METHODS[name], GraphMethod)]
trained_methods = pytest.mark.parametrize("name", TRAINED)


GENTLE = {"sgl": {"contrast_weight": 0.01}, "ultragcn": {"negative_weight": 1.0}}
"""Who keeps nodes apart does so gently: on a checkerboard the first epoch is kept, for on validation all are alike."""


def quick(name: str) -> dict[str, Any]:
    """Hyperparameters that train in a second and still learn."""
    if not issubclass(METHODS[name], GraphMethod):
        return {}
    size = {"embedding_size": 32, "layers": 2, "batch_size": 1024}
    return size | {"epochs": 10, "patience": 10, "learning_rate": 0.02} | GENTLE.get(name, {})


def suited(data: Dataset, name: str) -> Dataset:
    """With a sample of randomised exposure for methods that ask for one."""
    return replace(data, randomised=data.valid) if issubclass(METHODS[name], Randomised) else data


def short(name: str) -> dict[str, Any]:
    """The same, three epochs of it."""
    return quick(name) | ({"epochs": 3, "seed": 4} if quick(name) else {})


@pytest.fixture(scope="module")
def fitted(small_world: Dataset) -> Callable[[str], Model]:
    """A short training of a method, made when a test first asks for it."""
    return cache(lambda name: fit(suited(small_world, name), name, **short(name)))


@pytest.fixture(scope="module")
def run_of(small_world: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Model]:
    """The same training in a run folder, `path` of the model."""
    return cache(lambda name: train_into(tmp_path_factory.mktemp(name) / "run", small_world, name))


def train_into(folder: Path, world: Dataset, name: str, **how: Any) -> Model:
    data = suited(world, name)
    return fit_into(folder, data, make_method(data, name, short(name)), **how)


@every_method
def test_same_seed_same_bits(name: str, fitted: Callable[[str], Model], run_of: Callable[[str], Model]) -> None:
    assert fitted(name).recommend(k=20).equals(run_of(name).recommend(k=20))


@every_method
def test_clearly_better_than_chance(name: str, small_world: Dataset) -> None:
    data = suited(small_world, name)
    model = fit(data, name, **quick(name))
    evaluator = Evaluator(data, 20)
    rng = np.random.default_rng(0)
    order = np.argsort(rng.random((len(evaluator.users), small_world.n_items)), axis=1)[:, :20]
    chance = evaluator.evaluate_lists(order).metrics["recall@20"]
    assert evaluate(model, data).metrics["recall@20"] > 1.2 * chance


@pytest.fixture(scope="module")
def checkerboard() -> tuple[Dataset, dict[str, str]]:
    """Two kinds of users, two kinds of items, all equally popular: everybody took the own kind's items but one."""
    rows, withheld = [], {}
    for user in range(60):
        mine = [f"i{item:02}" for item in range(24) if item % 2 == user % 2]
        withheld[f"u{user:02}"] = mine.pop(user // 2 % len(mine))
        rows += [(f"u{user:02}", item) for item in mine]
    train = pl.DataFrame(rows, schema=["user_id", "item_id"], orient="row")
    kept = pl.DataFrame(list(withheld.items()), schema=["user_id", "item_id"], orient="row")
    return Dataset.from_frame(train, valid=kept, test=kept), withheld


@every_method
def test_on_a_checkerboard_the_withheld_item_is_first(name: str, checkerboard: tuple[Dataset, dict[str, str]]) -> None:
    """Where all items are equally popular, only who learns tastes can tell the withheld item from the other kind's."""
    data, withheld = checkerboard
    settings = quick(name) | ({"epochs": 25, "patience": 25} if quick(name) else {})
    lists = fit(suited(data, name), name, **settings).recommend(k=1, popularity_dial=0)
    right = sum(withheld[user] == item for user, item in lists.select("user_id", "item_id").iter_rows())
    if name == "most-popular":
        assert right < 0.7 * len(withheld)  # what no unpersonalised method can pass
    else:
        assert right >= 0.9 * len(withheld)


@trained_methods
def test_a_learning_rate_of_a_thousand_diverges_and_a_tenth_does_not(name: str, small_world: Dataset) -> None:
    with pytest.raises(DivergedError, match="training diverged: the loss was"):
        fit(suited(small_world, name), name, **(quick(name) | {"epochs": 3, "learning_rate": 1e3}))
    small = {"learning_rate": 1e-4, "layers": 2} if name == "dpaa-as-printed" else {"learning_rate": 0.1, "layers": 4}
    fit(suited(small_world, name), name, **(quick(name) | {"epochs": 3} | small))  # unscaled sums grow with degrees


@every_method
def test_save_load_and_fold_in(name: str, small_world: Dataset, tmp_path: Path, fitted: Callable[[str], Model]) -> None:
    model = fitted(name)
    model.save(tmp_path / "run")
    again = load(tmp_path / "run")
    assert again.recommend(k=10).equals(model.recommend(k=10))
    history = small_world.item_ids.head(3)
    assert again.recommend_for(history, k=10).equals(model.recommend_for(history, k=10))
    assert not set(history) & set(again.recommend_for(history, k=10)["item_id"])
    again.save(tmp_path / "copy")
    for file in ("model.safetensors", "edges.parquet"):
        assert (tmp_path / "copy" / file).read_bytes() == (tmp_path / "run" / file).read_bytes(), file


@every_method
def test_cold_items_lonely_users_and_one_item_users(name: str) -> None:
    train = pl.DataFrame({"user_id": [1, 1, 1, 2, 3, 3], "item_id": [1, 2, 3, 1, 2, 4]})
    test = pl.DataFrame({"user_id": [4, 2], "item_id": [5, 3]})  # user 4 and item 5 are not in training
    data = Dataset.from_frame(train, valid=test, test=test, name="edge")
    settings = quick(name) | ({"epochs": 2} if quick(name) else {})
    lists = fit(suited(data, name), name, **settings).recommend(k=5)
    assert set(lists["user_id"]) == {1, 2, 3, 4}
    assert lists["score"].is_finite().all()
    assert lists.filter(pl.col("user_id") == 4).height == 5


@every_method
def test_newcomers_of_every_kind(name: str, small_world: Dataset, fitted: Callable[[str], Model]) -> None:
    """Scores of a newcomer depend on the history alone: not on the other newcomers, nor on the candidates."""
    method = fitted(name).method
    histories = Histories(Pairs.of([0, 0, 0, 2], [5, 9, 30, 5]), 3)  # three items, none, one
    whole = method.scorer(None, histories)(torch.arange(3))
    assert whole.shape == (3, small_world.n_items)
    assert torch.isfinite(whole).all()
    some = torch.tensor([40, 3, 7])
    torch.testing.assert_close(method.scorer(some, histories)(torch.arange(3)), whole[:, some])
    alone = Histories(Pairs.of([0, 0, 0], [5, 9, 30]), 1)
    torch.testing.assert_close(method.scorer(None, alone)(torch.tensor([0])), whole[:1])


@trained_methods
def test_a_resumed_run_equals_the_uninterrupted_one(
    name: str, small_world: Dataset, tmp_path: Path, run_of: Callable[[str], Model]
) -> None:
    straight, questions = run_of(name), iter(range(1, 99))
    callbacks = Callbacks(stop_requested=lambda: next(questions) == 9, checkpoint_seconds=0)
    with pytest.raises(Interrupted):  # in the second of three epochs, checkpoint after checkpoint
        train_into(tmp_path / "parts", small_world, name, callbacks=callbacks)
    resumed = train_into(tmp_path / "parts", small_world, name, resume=True)
    for tensor, expected in straight.method.state().items():
        assert torch.equal(resumed.method.state()[tensor], expected), tensor
    assert resumed.manifest.get("tuned") == straight.manifest.get("tuned")
