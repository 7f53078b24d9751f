"""Trainings in MLflow and Weights & Biases: what is logged, and what happens where a tool fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dpaa
from dpaa.data.dataset import Dataset
from dpaa.errors import InputError
from dpaa.runs.fit import Callbacks, fit_method, make_method
from dpaa.runs.tracking import tracked
from tests.conftest import TINY


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What a tool called `paper` is told."""
    kept: list[Any] = []

    def paper(*opened: Any) -> Any:
        kept.append(opened)
        return lambda *logged: kept.append(logged), kept.append

    monkeypatch.setitem(__import__("dpaa.runs.tracking", fromlist=["x"]).TRACKERS, "paper", paper)
    return kept


def test_hyperparameters_epochs_and_the_best(small_world: Dataset, lines: list[Any]) -> None:
    dpaa.fit(small_world, "lightgcn", log_to="paper", **TINY)
    (title, params, tags), *epochs, finished = lines
    assert title == "lightgcn on demo"
    assert params["layers"] == 2
    assert tags["dataset_fingerprint"] == small_world.fingerprint
    assert [epoch for _, epoch in epochs] == [1, 2, 3]
    assert {"loss", "seconds", "valid_recall_at_20", "valid_ndcg_at_20", "best_epoch"} <= epochs[0][0].keys()
    assert finished is True


def test_a_pre_trained_model_has_names_of_its_own(small_world: Dataset, lines: list[Any]) -> None:
    dpaa.fit(small_world, "dpaa", log_to=["paper"], **TINY)
    names = [name for numbers, _ in lines[1:-1] for name in numbers if name.endswith("loss")]
    assert names == ["lightgcn/loss"] * 3 + ["loss"] * 3


def test_a_tool_that_fails(small_world: Dataset, lines: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="no pre-trained model"):
        dpaa.fit(small_world, "lightgcn", pretrained="nowhere", log_to="paper", **TINY)
    assert lines[-1] is False
    with pytest.raises(InputError, match="there is no tracker 'stone'; log to mlflow or wandb"):
        dpaa.fit(small_world, "lightgcn", log_to="stone")

    def dead(*_: object) -> Any:
        raise ConnectionError("the line is dead")

    trackers = __import__("dpaa.runs.tracking", fromlist=["x"]).TRACKERS
    monkeypatch.setitem(trackers, "paper", dead)
    with pytest.raises(InputError, match=r"cannot log to paper \(the line is dead\)"):
        dpaa.fit(small_world, "most-popular", log_to="paper")
    monkeypatch.setitem(trackers, "paper", lambda *_: (dead, dead))
    said: list[str] = []
    method = make_method(small_world, "lightgcn", TINY)
    with tracked("paper", method, small_world, Callbacks(say=said.append)) as callbacks:
        fit_method(method, small_world, callbacks)
    assert said == ["paper failed (the line is dead); nothing more is logged there"]


@pytest.mark.filterwarnings("ignore")  # those of the tools themselves
def test_mlflow_keeps_a_training_in_a_local_file(
    small_world: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = pytest.importorskip("mlflow", reason="the extra mlflow is not installed")
    store = f"sqlite:///{tmp_path / 'mlflow.db'}"
    mlflow.set_tracking_uri(store)
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "ours")
    dpaa.fit(small_world, "lightgcn", log_to="mlflow", **TINY)
    client = mlflow.MlflowClient(store)
    (run,) = client.search_runs([client.get_experiment_by_name("ours").experiment_id])
    assert (run.info.run_name, run.info.status) == ("lightgcn on demo", "FINISHED")
    assert run.data.params["layers"] == "2"
    assert [one.step for one in client.get_metric_history(run.info.run_id, "loss")] == [1, 2, 3]
    assert mlflow.active_run() is None


@pytest.mark.filterwarnings("ignore")
def test_wandb_keeps_a_training_offline(small_world: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb", reason="the extra wandb is not installed")
    for name, value in (("MODE", "offline"), ("DIR", str(tmp_path)), ("SILENT", "true")):
        monkeypatch.setenv(f"WANDB_{name}", value)
    dpaa.fit(small_world, "lightgcn", log_to="wandb", **TINY)
    (kept,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    content = kept.read_bytes()
    assert all(name in content for name in (b"valid_recall_at_20", b"valid_ndcg_at_20", b"loss"))
