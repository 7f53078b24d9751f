"""Trials, the file of the best hyperparameters, and the metric that a search is for."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import dpaa
from dpaa.data.dataset import Dataset
from dpaa.errors import InputError
from dpaa.evaluation.evaluator import Evaluator
from dpaa.evaluation.metrics import METRICS
from dpaa.tuning.trial import Trial, TuningGoal, best_toml, trials_behind


def test_the_best_hyperparameters_can_be_read_back_and_name_the_number_of_trials(tmp_path: Path) -> None:
    settings = {"l2": 1e-5, "neighbour_scaling": "none", "iiw": True}
    text = best_toml("dpaa", settings, Trial(7, "complete", {}, 0.5, metrics={"recall@20": 0.5}), 30)
    (tmp_path / "best.toml").write_text(text)
    assert tomllib.loads(text) == {"method": "dpaa"} | settings
    assert trials_behind(tmp_path / "best.toml") == 30
    (tmp_path / "other.toml").write_text('# trial of mine\nmethod = "dpaa"\n')
    assert trials_behind(tmp_path / "other.toml") == 0


def test_every_metric_of_the_table_can_be_searched_by(world: Dataset) -> None:
    model = dpaa.fit(world, "most-popular")
    metrics = Evaluator(world, (5, 20), "valid", "drop").evaluate(model.method).metrics
    for key in [f"{name}@{k}" for name in METRICS for k in (5, 20)] + ["recall@20/niche", "ndcg@5/popular"]:
        goal, value = TuningGoal(key), metrics[key]
        assert goal.measure(model.method, world) == {key: value}
        better = METRICS[key.partition("@")[0]].better
        assert goal.merit(metrics) == {"high": value, "low": -value, "zero": -abs(value)}[better]
    with pytest.raises(InputError, match="gini@20/niche has no value on the validation split"):
        TuningGoal("gini@20/niche").measure(model.method, world)


def test_the_best_comes_first_and_of_equals_the_earlier() -> None:
    values = [(0.1, 0.5), (0.3, 0.45), (0.2, 0.4901), (0.15, 0.495), (0.2, 0.4901)]
    trials = [
        Trial(number, "complete", {}, niche, metrics={"recall@20/niche": niche, "ndcg@20": ndcg})
        for number, (niche, ndcg) in enumerate(values)
    ]
    trials.append(Trial(9, "pruned", {}, 0.9))
    assert [trial.number for trial in TuningGoal("recall@20/niche").ranked(trials)] == [1, 2, 4, 3, 0]
    limited = TuningGoal("recall@20/niche", "ndcg@20=2%")
    assert [trial.number for trial in limited.ranked(trials)] == [2, 4, 3, 0, 1], "what loses too much comes last"
    low = TuningGoal("recall@20", "arp@20=0.1")
    assert low.merit({"recall@20": 0.5, "arp@20": 110.0}, [{"arp@20": 100.0}]) == 0.5
    assert low.merit({"recall@20": 0.5, "arp@20": 120.0}, [{"arp@20": 100.0}]) < -1e9
