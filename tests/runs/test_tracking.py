"""Trainings in MLflow and Weights & Biases: what is told, when, and what happens where a tool fails."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import dpaa
from dpaa.data.dataset import Dataset
from dpaa.errors import InputError
from dpaa.runs.fit import Callbacks, fit_method, make_method
from dpaa.runs.tracking import MLflow, Tracker, WandB, find_trackers, tracked
from tests.conftest import TINY


class Notebook(Tracker):
    """Remembers; fails where it is told to."""

    name = "notebook"

    def __init__(self, fails: str = "") -> None:
        self.lines: list[tuple[str, Any]] = []
        self._fails = fails

    def _note(self, what: str, content: Any) -> None:
        if what == self._fails:
            raise ConnectionError("the line is dead")
        self.lines.append((what, content))

    def begin(self, title: str, settings: Mapping[str, Any], about: Mapping[str, str]) -> None:
        self._note("begin", (title, dict(settings), dict(about)))

    def log(self, metrics: Mapping[str, float], epoch: int) -> None:
        self._note("log", (dict(metrics), epoch))

    def end(self, summary: Mapping[str, float], finished: bool) -> None:
        self._note("end", (dict(summary), finished))


def test_settings_epochs_and_what_came_of_it(small_world: Dataset) -> None:
    tracker = Notebook()
    model = dpaa.fit(small_world, "lightgcn", log_to=tracker, **TINY)
    (_, (title, settings, about)), *epochs, (_, (summary, finished)) = tracker.lines
    assert title == "lightgcn on demo"
    assert settings["layers"] == 2
    assert about["dataset_fingerprint"] == small_world.fingerprint
    assert [line[1][1] for line in epochs] == [1, 2, 3]
    assert {"loss", "seconds", "valid_recall_at_20", "valid_ndcg_at_20"} <= epochs[0][1][0].keys()
    assert finished
    assert summary["best_valid_recall_at_20"] == model.manifest["training"]["best_valid_recall@20"]


def test_a_part_has_names_of_its_own(small_world: Dataset) -> None:
    tracker = Notebook()
    dpaa.fit(small_world, "dpaa", log_to=[tracker], **TINY)
    names = [key for what, content in tracker.lines if what == "log" for key in content[0] if key.endswith("loss")]
    assert len(names) == 6
    assert all("/" in name for name in names[:3])
    assert names[3:] == ["loss"] * 3


def test_a_tool_that_fails_on_the_way_is_told_of_once(small_world: Dataset) -> None:
    said: list[str] = []
    method = make_method(small_world, "lightgcn", TINY)
    with tracked(Notebook("log"), method, small_world, Callbacks(say=said.append)) as (callbacks, told):
        told(fit_method(method, small_world, callbacks))
    assert said == ["notebook failed (the line is dead); nothing more is logged there"]


def test_a_tool_that_cannot_begin_is_an_error_and_a_stopped_training_is_told(small_world: Dataset) -> None:
    with pytest.raises(InputError, match=r"cannot log to notebook \(the line is dead\)"):
        dpaa.fit(small_world, "most-popular", log_to=Notebook("begin"))
    tracker = Notebook()
    with pytest.raises(InputError, match="no pre-trained model"):
        dpaa.fit(small_world, "lightgcn", pretrained="nowhere", log_to=tracker, **TINY)
    assert tracker.lines[-1] == ("end", ({}, False))


def test_names() -> None:
    assert [type(one) for one in find_trackers(["mlflow", "wandb"])] == [MLflow, WandB]
    assert find_trackers(None) == []
    with pytest.raises(InputError, match="there is no tracker 'paper'; log to mlflow or wandb"):
        find_trackers("paper")


@pytest.mark.filterwarnings("ignore")  # those of the tools themselves
def test_mlflow_keeps_a_training_in_a_local_file(small_world: Dataset, tmp_path: Path) -> None:
    mlflow = pytest.importorskip("mlflow", reason="the extra mlflow is not installed")
    store = f"sqlite:///{tmp_path / 'mlflow.db'}"
    model = dpaa.fit(small_world, "lightgcn", log_to=MLflow("ours", store, "first"), **TINY)
    client = mlflow.MlflowClient(store)
    experiment = client.get_experiment_by_name("ours")
    (run,) = client.search_runs([experiment.experiment_id])
    assert run.info.run_name == "first"
    assert run.info.status == "FINISHED"
    assert run.data.params["layers"] == "2"
    assert run.data.tags["dataset_fingerprint"] == small_world.fingerprint
    losses = client.get_metric_history(run.info.run_id, "loss")
    assert [one.step for one in losses] == [1, 2, 3]
    best = run.data.metrics["best_valid_recall_at_20"]
    assert best == pytest.approx(model.manifest["training"]["best_valid_recall@20"])
    assert mlflow.active_run() is None


@pytest.mark.filterwarnings("ignore")
def test_wandb_keeps_a_training_offline(small_world: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb", reason="the extra wandb is not installed")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    monkeypatch.setenv("WANDB_SILENT", "true")
    tracker = WandB("ours", "first")
    dpaa.fit(small_world, "lightgcn", log_to=tracker, **TINY)
    assert tracker._run.config["layers"] == 2
    (kept,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    content = kept.read_bytes()
    assert all(name in content for name in (b"best_valid_recall_at_20", b"valid_ndcg_at_20", b"loss"))
