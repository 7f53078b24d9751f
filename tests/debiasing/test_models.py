"""The models of a frontier: trained, resumed, taken as they are."""

import time
from pathlib import Path
from typing import Any

import pytest

from dpaa import Dataset, InputError, fit
from dpaa.data.sources import world
from dpaa.debiasing._models import MODELS, ModelStore
from tests.conftest import TINY


@pytest.fixture(scope="module")
def data() -> Dataset:
    return world.simulate(users=60, items=40, seed=2)


def store(folder: Path, data: Dataset, **more: Any) -> ModelStore:
    return ModelStore(folder, data, more.pop("settings", {}), 0, **more)


def test_what_is_trained_is_not_trained_again(data: Dataset, tmp_path: Path) -> None:
    first = store(tmp_path, data, settings=TINY)
    first.train(["lightgcn", "ease"], required=True)
    assert list(first.models) == ["ease", "lightgcn"]  # what takes a moment comes first
    written = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*") if file.is_file()}
    again = store(tmp_path, data, settings=TINY, deadline=time.monotonic())  # what is there costs no time
    again.train(["ease", "lightgcn", "item-knn"], required=True)
    assert list(again.models) == ["ease", "lightgcn"]
    assert again.notes == ["item-knn was not tried, as the time is up; call again with more --max-minutes"]
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*") if file.is_file()} == written


@pytest.mark.parametrize("required", [True, False])
def test_a_model_with_other_hyperparameters_is_refused(required: bool, data: Dataset, tmp_path: Path) -> None:
    store(tmp_path, data).train(["ease"], required=True)
    with pytest.raises(InputError, match="other hyperparameters or of another dataset; pass --overwrite"):
        store(tmp_path, data, settings={"ridge": 3.0}).train(["ease"], required=required)
    again = store(tmp_path, data, settings={"ridge": 3.0}, overwrite=True)
    again.train(["ease"], required=required)
    assert again.models["ease"].method.get_params()["ridge"] == 3.0


def test_runs_are_taken_under_their_names_and_each_once(data: Dataset, tmp_path: Path) -> None:
    for name in ("one/ease", "other/ease", "ease"):
        fit(data, "ease").save(tmp_path / name)
    (tmp_path / "link").symlink_to(tmp_path / "one" / "ease")
    some, own = store(tmp_path / "trade", data), tmp_path / "trade" / MODELS / "item-knn"
    runs = [tmp_path / name for name in ("one/ease", "other/ease", "ease", "one/ease", "link")]
    names = some.read([*runs, own], ["item-knn"])
    assert list(some.taken) == ["ease", str(tmp_path / "other/ease"), str(tmp_path / "ease")]
    assert list(names.values()) == [*some.taken, "item-knn"]  # the last is yet to be trained
    fit(world.simulate(users=60, items=40, seed=3), "ease").save(tmp_path / "of other data")
    with pytest.raises(InputError, match="trained on another dataset"):
        some.read([tmp_path / "of other data"], [])
