"""Who trains and validates for a method that is made of several trainings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaa.data.dataset import Dataset
from dpaa.data.pairs import Pairs
from dpaa.data.prepare import VALIDATION_EXPOSURE
from dpaa.evaluation.dial_curve import KAPPAS
from dpaa.evaluation.evaluator import Evaluator
from dpaa.evaluation.metrics import ndcg
from dpaa.methods.lightgcn import LightGCN
from dpaa.methods.settings import PAPER_TRAINING
from dpaa.runs.fit import Callbacks, _fit_part, fit_method, make_method
from dpaa.runs.folder import RunFolder
from dpaa.runs.stages import RunStages

QUICK = PAPER_TRAINING | {"embedding_size": 8, "layers": 2, "epochs": 12, "threads": 1}


def test_the_least_turn_that_validation_cannot_tell_from_the_best_is_taken(small_world: Dataset) -> None:
    model = fit_method(make_method(small_world, "lightgcn", QUICK), small_world)
    assert isinstance(model.method, LightGCN)
    validation = Evaluator(small_world, 20, "valid", "drop")
    verdict = RunStages(small_world, Callbacks(), None, validation, _fit_part).judge(model.method, "ndcg")
    values = {kappa: ndcg(validation.truth.context(validation.lists(model.method, kappa))) for kappa in KAPPAS}
    best = max(values.values(), key=np.mean)
    apart = {
        kappa: (best - value).mean() / ((best - value).std() / np.sqrt(len(best)) + 1e-12)
        for kappa, value in values.items()
    }
    assert apart[verdict.kappa] <= 1 + 1e-6
    assert all(apart[kappa] > 1 - 1e-6 for kappa in KAPPAS if abs(kappa) < abs(verdict.kappa))
    np.testing.assert_allclose(verdict.per_user, values[verdict.kappa], atol=1e-6)


def stages_of(data: Dataset, run: RunFolder | None = None, **callbacks: Any) -> RunStages:
    validation = Evaluator(data, 20, "valid", "drop") if len(data.valid) else None
    return RunStages(data, Callbacks(**callbacks), run, validation, _fit_part)


def test_epochs_are_counted_over_the_parts(small_world: Dataset) -> None:
    said: list[str] = []
    stages = stages_of(small_world, say=said.append)
    plain = stages.train("plain", "lightgcn", QUICK | {"epochs": 2})
    more = stages.train("more", "lightgcn", QUICK | {"epochs": 3}, start=plain)
    assert [(line["epoch"], line["part"]) for line in stages.history] == [
        (1, "plain"), (2, "plain"), (3, "more"), (4, "more"), (5, "more"),
    ]  # fmt: skip
    assert (plain.epochs, more.epochs, more.best_epoch) == (2, 3, 3)  # what goes on keeps its last epoch
    assert said == ["part more: 3 epochs from plain"]
    values = [line["valid"]["ndcg@20"] for line in stages.history[2:]]
    assert more.valid == pytest.approx(sum(values) / 3)


def test_a_part_that_goes_on_begins_with_the_tables_of_the_other(small_world: Dataset) -> None:
    stages = stages_of(small_world)
    plain = stages.train("plain", "lightgcn", QUICK | {"epochs": 2})
    still = stages.train("still", "lightgcn", QUICK | {"epochs": 1, "learning_rate": 1e-12}, start=plain)
    np.testing.assert_allclose(still.method.ego.rows(), plain.method.ego.rows(), atol=1e-6)


def test_a_finished_part_is_taken_over_and_not_trained_again(small_world: Dataset, tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    first = stages_of(small_world, run)
    made = first.train("plain", "lightgcn", QUICK | {"epochs": 2})
    again = stages_of(small_world, run)
    again.fit_part = lambda *_, **__: pytest.fail("trained again")
    found = again.train("plain", "lightgcn", QUICK | {"epochs": 2})
    assert again.history == first.history
    assert (found.epochs, found.best_epoch, found.valid) == (made.epochs, made.best_epoch, made.valid)
    assert (found.method.ego.rows() == made.method.ego.rows()).all()
    for (name, weight), (same_name, same) in zip(found.weights, made.weights, strict=True):
        assert name == same_name
        np.testing.assert_allclose(weight, same, rtol=1e-6)


def test_where_validation_cannot_judge_the_dial_stays_at_0(small_world: Dataset) -> None:
    made = stages_of(small_world).train("plain", "lightgcn", QUICK | {"epochs": 1}).method
    biased = replace(small_world, about=small_world.about | {VALIDATION_EXPOSURE: "biased"})
    verdict = stages_of(biased).judge(made, "ndcg")
    validation = Evaluator(biased, 20, "valid", "drop")
    assert verdict.kappa == 0.0
    assert verdict.value == pytest.approx(ndcg(validation.truth.context(validation.lists(made, 0.0))).mean())
    none = np.zeros(0, np.int32)
    blind = stages_of(replace(small_world, valid=Pairs(none, none)))
    assert (blind.judge(made, "ndcg").value, blind.judge(made, "ndcg").kappa) == (0.0, 0.0)
    assert blind.exposure_in_words() == "there are no validation pairs"
