"""Dataset and method become a model: interrupted, failed, evaluated."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import dpaa
from dpaa.data.dataset import Dataset
from dpaa.errors import InputError
from dpaa.ranking import Dial
from dpaa.runs.fit import Callbacks, evaluate, fit_into, make_method
from dpaa.runs.model import Model, load
from dpaa.training.trainer import Interrupted
from tests.runs.conftest import SETTINGS


def test_a_run_can_be_interrupted_and_resumed(small_world: Dataset, run: Path, tmp_path: Path) -> None:
    asked = 0

    def stop() -> bool:
        nonlocal asked
        asked += 1
        return asked == 7

    folder, said = tmp_path / "run", []
    method = make_method(small_world, "lightgcn", SETTINGS)
    with pytest.raises(Interrupted):
        fit_into(folder, small_world, method, callbacks=Callbacks(stop_requested=stop))
    with pytest.raises(InputError, match="holds an unfinished run; continue with --resume or pass --overwrite"):
        fit_into(folder, small_world, make_method(small_world, "lightgcn", SETTINGS))
    with pytest.raises(InputError, match=r"is an unfinished run \(it has no manifest.json\); finish it with"):
        load(folder)
    history = folder / "history.jsonl"
    history.write_text(history.read_text() + '{"epoch": 99, "torn')  # what a crash may leave
    callbacks = Callbacks(on_start=lambda _method, notes: said.extend(notes))
    other = make_method(small_world, "lightgcn", SETTINGS | {"l2": 0.5})
    with pytest.raises(InputError, match="the checkpoint was made with another settings"):
        fit_into(folder, small_world, other, resume=True)
    fit_into(folder, small_world, make_method(small_world, "lightgcn", SETTINGS), resume=True, callbacks=callbacks)
    assert any(note.startswith("resuming in epoch") for note in said)
    for name in ("model.safetensors", "edges.parquet", "users.parquet", "items.parquet", "config.json"):
        assert (folder / name).read_bytes() == (run / name).read_bytes(), name
    lines = [[json.loads(line) for line in (f / "history.jsonl").read_text().splitlines()] for f in (folder, run)]
    assert [{**line, "seconds": 0} for line in lines[0]] == [{**line, "seconds": 0} for line in lines[1]]
    assert not (folder / "checkpoint").exists()


def test_a_failed_training_leaves_nothing_behind(small_world: Dataset, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the loss became"):
        fit_into(
            tmp_path / "run", small_world, make_method(small_world, "lightgcn", SETTINGS | {"learning_rate": 1e30})
        )
    assert list(tmp_path.iterdir()) == []


def test_a_model_is_evaluated_on_its_own_dataset_only(model: Model) -> None:
    frame = pl.DataFrame({"user_id": ["u0001", "u0002"], "item_id": ["i0001", "i0002"]})
    other = Dataset.from_frame(frame, test=frame.with_columns(item_id=pl.lit("i0003")), name="other")
    with pytest.raises(InputError, match="trained on another dataset than other"):
        evaluate(model, other)


def test_wrong_types_of_arguments_are_said_so(small_world: Dataset) -> None:
    model = dpaa.fit(small_world, "most-popular")
    with pytest.raises(InputError, match="data must be a Dataset"):
        dpaa.fit("data")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="model must be a Model"):
        dpaa.evaluate("run", small_world)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="k must be a whole number"):
        model.recommend(k="a")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="is empty; leave it out"):
        model.recommend([None])


def test_a_finished_run_with_another_reranker_is_not_the_one_that_was_asked_for(
    small_world: Dataset, tmp_path: Path
) -> None:
    def again(rerank: Dial | None) -> Model:
        method = make_method(small_world, "most-popular", {})
        return fit_into(tmp_path / "run", small_world, method, resume=True, rerank=rerank)

    again(Dial(kappa=1.0))
    assert again(Dial(kappa=1.0)).reranker() == Dial(kappa=1.0)
    for other in (None, Dial(kappa=2.0)):
        with pytest.raises(InputError, match="holds a finished run; pass --overwrite"):
            again(other)
