"""What is said and checked before the first epoch, and what is counted after the last."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from dpaa.data.dataset import Dataset
from dpaa.errors import InputError
from dpaa.runs.fit import Callbacks, fit_into, fit_method, make_method
from dpaa.training.trainer import Interrupted
from tests.runs.conftest import SETTINGS


def test_resume_without_a_checkpoint_starts_afresh_and_says_so(small_world: Dataset, tmp_path: Path) -> None:
    said: list[str] = []
    callbacks = Callbacks(on_start=lambda _method, notes: said.extend(notes))
    method = make_method(small_world, "lightgcn", SETTINGS | {"epochs": 1})
    fit_into(tmp_path / "run", small_world, method, resume=True, callbacks=callbacks)
    assert "there is no checkpoint to resume from: training starts afresh" in said


def test_a_dataset_without_validation_trains_all_epochs(tmp_path: Path) -> None:
    frame = pl.DataFrame({"user_id": [1, 1, 2], "item_id": [5, 6, 5]})
    data = Dataset.from_frame(frame, name="made")
    said: list[str] = []
    callbacks = Callbacks(on_start=lambda _method, notes: said.extend(notes))
    model = fit_into(tmp_path / "run", data, make_method(data, "lightgcn", {"epochs": 3}), callbacks=callbacks)
    assert model.manifest["training"] == {"epochs": 3, "best_epoch": 3, "best_valid_recall@20": None}
    assert any("validation split is empty: all 3 epochs are trained" in note for note in said)
    assert any("1 user took every item" in note for note in said)


def test_nothing_to_learn_from(tmp_path: Path) -> None:
    data = Dataset.from_frame(pl.DataFrame({"user_id": [1, 2], "item_id": [5, 5]}), name="made")
    with pytest.raises(InputError, match="no user has both a positive item and one left to draw as a negative"):
        fit_into(tmp_path / "run", data, make_method(data, "lightgcn", {}))
    assert list(tmp_path.iterdir()) == []


def test_more_memory_than_there_is_is_refused_in_one_sentence(
    small_world: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpaa.runs.fit.memory_at_hand", lambda: 1_000_000)
    with pytest.raises(
        InputError, match=r"would take about .* GB of memory, 0.0 GB are free; use a smaller embedding_size"
    ):
        fit_into(tmp_path / "run", small_world, make_method(small_world, "lightgcn", SETTINGS))
    assert list(tmp_path.iterdir()) == []


def test_the_preview_comes_first(small_world: Dataset) -> None:
    seen: list[str] = []
    callbacks = Callbacks(
        on_preview=lambda preview: seen.append(f"{preview.epochs}"), on_epoch=lambda _: seen.append("epoch")
    )
    fit_method(make_method(small_world, "lightgcn", SETTINGS | {"epochs": 2}), small_world, callbacks)
    assert seen == ["2", "epoch", "epoch"]


def test_epochs_are_counted_over_interruptions(small_world: Dataset, tmp_path: Path) -> None:
    reports = 0

    def count(_report: object) -> None:
        nonlocal reports
        reports += 1

    callbacks = Callbacks(on_epoch=count, stop_requested=lambda: reports == 5)
    with pytest.raises(Interrupted):
        fit_into(tmp_path / "run", small_world, make_method(small_world, "lightgcn", SETTINGS), callbacks=callbacks)
    model = fit_into(tmp_path / "run", small_world, make_method(small_world, "lightgcn", SETTINGS), resume=True)
    assert model.manifest["training"]["epochs"] == 5
