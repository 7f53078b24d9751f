"""Dataset and method become a model: built, checked before the first epoch, interrupted, resumed, failed."""

import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
from scipy import sparse

import dpaa
from dpaa.evaluation.evaluator import Evaluator
from dpaa.methods.graph_method import EARLIER_DEFAULTS
from dpaa.methods.macr import REFERENCES
from dpaa.methods.ppac import GLOBAL_STRENGTHS
from dpaa.ranking import Dial
from dpaa.runs.fit import Callbacks, fit, fit_into, make_method, plan_training
from tests.runs.conftest import SETTINGS
from tests.trainings import interrupted


def noting(notes: list[str]) -> Callbacks:
    return Callbacks(on_start=lambda _method, more: notes.extend(more))


def test_frames_and_sparse_matrices_are_fitted_alike() -> None:
    """A tenth of the pairs is validation; ids are the frame's, or the numbers of rows and columns."""
    user, item = (np.repeat(np.arange(60), 12), (np.arange(720) * 7) % 97)
    frame = pl.DataFrame({"user_id": user, "item_id": item})
    matrix = sparse.csr_matrix((np.append(np.ones(720), 0), (np.append(user, 0), np.append(item, 96))))  # 0: no pair
    columns = frame.to_dict(as_series=False)
    given = [frame, pytest.importorskip("pandas").DataFrame(columns), columns, matrix]
    models = [dpaa.EASE(ridge=10).fit(data) for data in given]
    assert 600 < len(models[0].train) < 720
    for model in models:
        assert model.recommend(k=5).equals(models[0].recommend(k=5))
    assert dpaa.LightGCN(epochs=1).fit(frame).manifest["training"]["best_valid_recall@20"] is not None
    with pytest.raises(dpaa.InputError, match=r"data must be a Dataset, got .clicks\.csv.; read one"):
        dpaa.EASE().fit("clicks.csv")


def test_a_run_can_be_interrupted_and_resumed(small_world: dpaa.Dataset, run: Path, tmp_path: Path) -> None:
    folder, notes = tmp_path / "run", []
    interrupted(7, folder, small_world, make_method(small_world, "lightgcn", SETTINGS))
    history = folder / "history.jsonl"
    history.write_text(history.read_text() + '{"epoch": 99, "torn')  # what a crash may leave
    other = make_method(small_world, "lightgcn", SETTINGS | {"l2": 0.5})
    with pytest.raises(dpaa.InputError, match="the checkpoint was made with another l2"):
        fit_into(folder, small_world, other, resume=True)
    again = make_method(small_world, "lightgcn", SETTINGS)
    model = fit_into(folder, small_world, again, resume=True, callbacks=noting(notes))
    assert model.manifest["training"]["epochs"] == 5
    assert any(note.startswith("resuming in epoch") for note in notes)
    for name in ("model.safetensors", "edges.parquet", "users.parquet", "items.parquet", "config.json"):
        assert (folder / name).read_bytes() == (run / name).read_bytes(), name
    lines = [[json.loads(line) for line in (f / "history.jsonl").read_text().splitlines()] for f in (folder, run)]
    assert [{**line, "seconds": 0} for line in lines[0]] == [{**line, "seconds": 0} for line in lines[1]]
    assert not (folder / "checkpoint").exists()


def test_resuming_a_finished_run_keeps_its_reranker(small_world: dpaa.Dataset, tmp_path: Path) -> None:
    def again(rerank: Dial | None) -> dpaa.Model:
        method = make_method(small_world, "most-popular", {})
        return fit_into(tmp_path / "run", small_world, method, resume=True, rerank=rerank)

    for rerank in (Dial(kappa=1.0), Dial(kappa=1.0), None):
        assert again(rerank).reranker() == Dial(kappa=1.0)
    with pytest.raises(dpaa.InputError, match="holds a finished run; pass --overwrite"):
        again(Dial(kappa=2.0))


def test_a_dataset_without_validation_trains_all_epochs(tmp_path: Path) -> None:
    data = dpaa.Dataset.from_frame(pl.DataFrame({"user_id": [1, 1, 2], "item_id": [5, 6, 5]}), name="made")
    notes: list[str] = []
    model = fit_into(tmp_path / "run", data, make_method(data, "lightgcn", {"epochs": 3}), callbacks=noting(notes))
    assert model.manifest["training"] == {"epochs": 3, "best_epoch": 3, "best_valid_recall@20": None}
    assert any("validation split is empty: all 3 epochs are trained" in note for note in notes)
    assert any("1 users have no training item, or every item" in note for note in notes)


def test_more_memory_than_there_is(small_world: dpaa.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpaa.runs.fit.memory_at_hand", lambda: 50_000)
    with pytest.raises(dpaa.InputError, match=r"takes about .* GB, 0.0 are free; reduce embedding_size"):
        fit_into(tmp_path / "run", small_world, make_method(small_world, "lightgcn", SETTINGS))
    assert list(tmp_path.iterdir()) == []


def test_a_resumed_call_is_completed_from_its_run(run: Path, tmp_path: Path) -> None:
    assert plan_training(tmp_path / "new", None, {"layers": 1}) == ("lightgcn", {"layers": 1})
    method, hyperparameters = plan_training(run, None, {"epochs": 9}, resume=True)
    assert (method, hyperparameters["epochs"], hyperparameters["seed"]) == ("lightgcn", 9, 3)
    assert plan_training(run, "ease", {}, resume=True) == ("ease", {})
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "config.json").write_text('{"method": "lightgcn", "kernel": "csr", "l2": 0.5}')
    begun = plan_training(tmp_path / "begun", None, {}, resume=True)[1]
    assert begun == {"kernel": "csr", "l2": 0.5} | EARLIER_DEFAULTS, "as a run that lacks them was trained"
    (tmp_path / "begun" / "config.json").write_text('{"method": "dpaa", "weighted_layers": "all"}')
    assert plan_training(tmp_path / "begun", None, {}, resume=True)[1]["first_layer_only"] == 0.0


def test_arguments_of_wrong_types_are_refused(small_world: dpaa.Dataset) -> None:
    model = dpaa.fit(small_world, "most-popular")
    with pytest.raises(dpaa.InputError, match="data must be a Dataset"):
        dpaa.fit("data")  # type: ignore[arg-type]
    with pytest.raises(dpaa.InputError, match="model must be a Model"):
        dpaa.evaluate("run", small_world)  # type: ignore[arg-type]
    with pytest.raises(dpaa.InputError, match="k must be a whole number"):
        model.recommend(k="a")  # type: ignore[arg-type]
    with pytest.raises(dpaa.InputError, match="the user ids cannot be Null"):
        model.recommend([None])


@pytest.mark.parametrize(
    ("name", "chosen", "lookups"),
    [
        ("macr", {}, len(REFERENCES)),
        ("macr", {"reference": 2.0}, 0),
        ("ppac", {"personal_strength": 0.0}, len(GLOBAL_STRENGTHS)),
        ("dap", {"clusters": 1, "low_strength": 0.0}, None),
        ("lightgcn", {}, 0),
    ],
    ids=str,
)
def test_the_manifest_counts_the_strengths_that_validation_chose_from(
    small_world: dpaa.Dataset, name: str, chosen: dict[str, Any], lookups: int | None
) -> None:
    small: dict[str, Any] = {"embedding_size": 4, "layers": 1, "epochs": 1}
    with patch.object(Evaluator, "recall_of", autospec=True, side_effect=Evaluator.recall_of) as one_at_a_time:
        model = fit(small_world, name, **small, **chosen)
    assert model.manifest["lookups"] == (one_at_a_time.call_count if lookups is None else lookups)
    if name == "dap":
        assert 4 <= one_at_a_time.call_count <= 7, "four strengths, then at most three around the best"
