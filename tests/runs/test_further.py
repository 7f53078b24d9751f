"""A finished run is trained further, in its place, and the old one stays until the new one is whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from dpaa.data.dataset import Dataset
from dpaa.errors import InputError
from dpaa.ranking import Dial
from dpaa.runs.fit import Callbacks, fit_into, make_method
from dpaa.runs.folder import RunFolder
from dpaa.runs.model import Model, load
from dpaa.training.trainer import Interrupted
from tests.conftest import TINY


def train(folder: Path, data: Dataset, epochs: int, method: str = "lightgcn", **more: Any) -> Model:
    how = {name: more.pop(name) for name in ("callbacks", "rerank") if name in more}
    return fit_into(folder, data, make_method(data, method, TINY | {"epochs": epochs} | more), resume=True, **how)


def test_epochs_are_added(small_world: Dataset, tmp_path: Path) -> None:
    first = train(tmp_path / "run", small_world, 3)
    said: list[str] = []
    callbacks = Callbacks(on_start=lambda _method, notes: said.extend(notes))
    model = train(tmp_path / "run", small_world, 7, callbacks=callbacks)
    assert "the finished run is trained further, from epoch 4 on" in said
    assert [line["epoch"] for line in RunFolder(tmp_path / "run").history()] == [1, 2, 3, 4, 5, 6, 7]
    assert model.manifest["training"]["epochs"] == 7
    assert model.manifest["trained_further"]["epochs"] == 3
    recall = "best_valid_recall@20"
    assert model.manifest["training"][recall] >= first.manifest["training"][recall]
    assert load(tmp_path / "run").manifest["training"] == model.manifest["training"]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["run"]


def test_a_stop_on_the_way_leaves_the_finished_run_and_goes_on(small_world: Dataset, tmp_path: Path) -> None:
    train(tmp_path / "run", small_world, 2)
    before = load(tmp_path / "run").method.state()
    done = 0

    def count(_report: object) -> None:
        nonlocal done
        done += 1

    callbacks = Callbacks(on_epoch=count, stop_requested=lambda: done == 2)
    with pytest.raises(Interrupted):
        train(tmp_path / "run", small_world, 6, callbacks=callbacks)
    for name, tensor in load(tmp_path / "run").method.state().items():
        assert torch.equal(tensor, before[name])
    model = train(tmp_path / "run", small_world, 6)
    assert [line["epoch"] for line in RunFolder(tmp_path / "run").history()] == [1, 2, 3, 4, 5, 6]
    train(tmp_path / "other", small_world, 2)
    whole = train(tmp_path / "other", small_world, 6)
    for name, tensor in whole.method.state().items():
        assert torch.equal(tensor, model.method.state()[name])


def test_what_cannot_be_trained_further(small_world: Dataset, tmp_path: Path) -> None:
    train(tmp_path / "run", small_world, 3)
    with pytest.raises(InputError, match="has been trained for 3 epochs already; set epochs above 3"):
        train(tmp_path / "run", small_world, 2)
    with pytest.raises(InputError, match="holds a finished run; pass --overwrite"):
        train(tmp_path / "run", small_world, 9, layers=1)
    other = Dataset.of(
        {split: small_world.frame(split).head(300) for split in ("train", "valid", "test")},
        name="other",
        about={},  # type: ignore[misc]
    )
    with pytest.raises(InputError, match=r"was trained on another dataset than other .* --warm-start"):
        train(tmp_path / "run", other, 9)


def test_a_run_that_is_trained_further_can_be_finished_on_the_way(small_world: Dataset, tmp_path: Path) -> None:
    train(tmp_path / "run", small_world, 2, rerank=Dial(kappa=-1.0))
    done = 0

    def count(_report: object) -> None:
        nonlocal done
        done += 1

    callbacks = Callbacks(on_epoch=count, stop_requested=lambda: done == 2)
    with pytest.raises(Interrupted):
        train(tmp_path / "run", small_world, 9, callbacks=callbacks, rerank=Dial(kappa=-1.0))
    method = make_method(small_world, "lightgcn", TINY | {"epochs": 9})
    model = fit_into(tmp_path / "run", small_world, method, finish=True, overwrite=True)
    assert model.manifest["training"]["stopped"] == "finished early after epoch 4"
    assert model.manifest["trained_further"]["epochs"] == 2
    assert model.reranker() == Dial(kappa=-1.0)
    assert [line["epoch"] for line in RunFolder(tmp_path / "run").history()] == [1, 2, 3, 4]
    train(tmp_path / "other", small_world, 2)
    whole = train(tmp_path / "other", small_world, 4)
    for name, tensor in whole.method.state().items():
        assert torch.equal(tensor, model.method.state()[name])
