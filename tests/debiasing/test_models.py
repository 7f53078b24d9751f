"""The models of a frontier: trained, taken up again, taken as they are."""

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
    list(first.train(["ease", "lightgcn"], required=True))
    assert list(first.models) == ["ease", "lightgcn"]
    written = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*") if file.is_file()}
    again = store(tmp_path, data, settings=TINY, deadline=time.monotonic())  # what is there costs no time
    list(again.train(["ease", "lightgcn", "item-knn"], required=True))
    assert list(again.models) == ["ease", "lightgcn"]
    assert again.notes == [
        "the time is up, so these were not tried: item-knn; call again with a larger --budget"
    ]  # fmt: skip
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*") if file.is_file()} == written


@pytest.mark.parametrize("required", [True, False])
def test_a_model_with_other_settings_is_refused_aloud(required: bool, data: Dataset, tmp_path: Path) -> None:
    list(store(tmp_path, data).train(["ease"], required=True))
    with pytest.raises(InputError, match="other settings or of another dataset; pass --overwrite"):
        list(store(tmp_path, data, settings={"ridge": 3.0}).train(["ease"], required=required))
    again = store(tmp_path, data, settings={"ridge": 3.0}, overwrite=True)
    list(again.train(["ease"], required=required))
    assert again.models["ease"].method.get_params()["ridge"] == 3.0


def test_a_method_that_cannot_be_had_is_left_out_unless_it_is_required(
    data: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise InputError("there is no memory for it")

    monkeypatch.setattr(METHODS["ease"], "learn", refuse)
    some = store(tmp_path, data)
    list(some.train(["ease", "item-knn"], required=False))
    assert list(some.models) == ["item-knn"]
    assert some.notes == ["ease was left out: there is no memory for it"]
    with pytest.raises(InputError, match="no memory"):
        list(store(tmp_path, data).train(["ease"], required=True))


def test_settings_go_to_the_methods_that_have_them(data: Dataset, tmp_path: Path) -> None:
    some = store(tmp_path, data, settings={"neighbours": 7})
    list(some.train(["ease", "item-knn"], required=True))
    assert some.models["item-knn"].method.get_params()["neighbours"] == 7
    for settings, sentence in (
        ({"neighbors": 7}, "no method of these has a setting 'neighbors'"),
        ({"seed": 7}, "give it with --seed"),
    ):
        with pytest.raises(InputError, match=sentence):
            list(store(tmp_path, data, settings=settings).train(["ease", "item-knn"], required=True))
    with pytest.raises(InputError, match="settings are for methods that are trained here, and none is"):
        list(store(tmp_path, data, settings={"ridge": 1}).train([], required=False))


def test_runs_are_taken_under_their_names_and_each_once(data: Dataset, tmp_path: Path) -> None:
    for name in ("one/ease", "other/ease", "ease"):
        fit(data, "ease").save(tmp_path / name)
    (tmp_path / "link").symlink_to(tmp_path / "one" / "ease")
    some = store(tmp_path / "trade", data)
    list(some.train(["ease"], required=True))
    places = [tmp_path / name for name in ("one/ease", "other/ease", "ease", "one/ease", "link")]
    names = [some.take(place) for place in places]
    assert len(set(names)) == 3
    assert names[0] == names[3] == names[4]
    assert len(some.models) == 4
    assert some.take(tmp_path / "trade" / MODELS / "ease") == "ease"


def test_runs_of_another_dataset_and_the_run_that_is_written_are_refused(data: Dataset, tmp_path: Path) -> None:
    fit(world.simulate(users=60, items=40, seed=3), "ease").save(tmp_path / "other")
    with pytest.raises(InputError, match="trained on another dataset"):
        store(tmp_path / "trade", data).take(tmp_path / "other")
    fit(data, "ease").save(tmp_path / "trade" / "run")
    with pytest.raises(InputError, match="is what this call writes"):
        store(tmp_path / "trade", data).take(tmp_path / "trade" / "run")


def test_links_are_not_followed(data: Dataset, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    for link in ("models", "models/ease"):
        home = tmp_path / link.replace("/", "-")
        (home / link).parent.mkdir(parents=True)
        (home / link).symlink_to(tmp_path / "elsewhere")
        with pytest.raises(InputError, match="link"):
            list(store(home, data).train(["ease"], required=True))
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("methods", [["lightgcn", "dpaa", "ease"], ["lightgcn", "dpaa"]])
def test_however_short_the_time_there_is_a_model(methods: list[str], data: Dataset, tmp_path: Path) -> None:
    """What takes a moment comes first; without any such, the best of what there was time for."""
    some = store(tmp_path, data, settings=TINY, deadline=time.monotonic())
    assert list(some.train(methods, required=True)) == [methods[-1] if "ease" in methods else "lightgcn"]
    late = ", ".join(name for name in methods if name not in some.models)
    assert some.notes[-1] == f"the time is up, so these were not tried: {late}; call again with a larger --budget"
