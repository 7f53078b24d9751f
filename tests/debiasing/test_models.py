"""The models of a frontier: trained, resumed, taken as they are."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from dpaa.data.dataset import Dataset
from dpaa.data.sources import world
from dpaa.debiasing._models import MODELS, ModelStore
from dpaa.errors import InputError
from dpaa.methods import METHODS
from dpaa.runs.fit import fit
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
    assert again.notes == ["item-knn was not tried, as the time is up; call again with a larger --budget"]
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*") if file.is_file()} == written


def test_however_short_the_time_there_is_a_model(data: Dataset, tmp_path: Path) -> None:
    some = store(tmp_path, data, settings=TINY, deadline=time.monotonic())
    some.train(["lightgcn", "dpaa"], required=True)
    assert list(some.models) == ["lightgcn"]


@pytest.mark.parametrize("required", [True, False])
def test_a_model_with_other_hyperparameters_is_refused(required: bool, data: Dataset, tmp_path: Path) -> None:
    store(tmp_path, data).train(["ease"], required=True)
    with pytest.raises(InputError, match="other hyperparameters or of another dataset; pass --overwrite"):
        store(tmp_path, data, settings={"ridge": 3.0}).train(["ease"], required=required)
    again = store(tmp_path, data, settings={"ridge": 3.0}, overwrite=True)
    again.train(["ease"], required=required)
    assert again.models["ease"].method.get_params()["ridge"] == 3.0


def test_a_method_that_cannot_be_trained_is_left_out_unless_it_is_required(
    data: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise InputError("there is no memory for it")

    monkeypatch.setattr(METHODS["ease"], "learn", refuse)
    some = store(tmp_path, data)
    some.train(["ease", "item-knn"], required=False)
    assert list(some.models) == ["item-knn"]
    assert some.notes == ["ease was left out: there is no memory for it"]
    with pytest.raises(InputError, match="no memory"):
        store(tmp_path, data).train(["ease"], required=True)


def test_hyperparameters_go_to_the_methods_that_have_them(data: Dataset, tmp_path: Path) -> None:
    some = store(tmp_path, data, settings={"neighbours": 7})
    some.train(["ease", "item-knn"], required=True)
    assert some.models["item-knn"].method.get_params()["neighbours"] == 7
    for settings in ({"neighbors": 7}, {"seed": 7}):
        with pytest.raises(InputError, match=r"trained here has a hyperparameter '.*; known are ridge; give the seed"):
            store(tmp_path, data, settings=settings).train(["ease"], required=True)


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


def test_links_are_not_followed(data: Dataset, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    for link in ("models", "models/ease"):
        home = tmp_path / link.replace("/", "-")
        (home / link).parent.mkdir(parents=True)
        (home / link).symlink_to(tmp_path / "elsewhere")
        with pytest.raises(InputError, match="link"):
            store(home, data).train(["ease"], required=True)
    assert list((tmp_path / "elsewhere").iterdir()) == []
