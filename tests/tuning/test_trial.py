"""Trials, the file of the best hyperparameters, and what a search is for."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpaa
from dpaa.data.dataset import Dataset
from dpaa.errors import InputError
from dpaa.evaluation.evaluator import Evaluator
from dpaa.evaluation.metrics import METRICS
from dpaa.tuning.trial import Trial, TuningGoal, best_toml, metric_of, trials_behind
from dpaa.tuning.tune import tune
from tests.command import dpaa_ok
from tests.tuning.conftest import FEW, TINY


def test_the_best_hyperparameters_can_be_read_back_and_name_the_number_of_trials(tmp_path: Path) -> None:
    settings = {"l2": 1e-5, "weighted_layers": "all", "iiw": True}
    text = best_toml("dpaa", settings, Trial(7, "complete", {}, 0.5, 1.0), 30)
    (tmp_path / "best.toml").write_text(text)
    assert tomllib.loads(text) == {"method": "dpaa"} | settings
    assert trials_behind(tmp_path / "best.toml") == 30
    (tmp_path / "other.toml").write_text('# trial of mine\nmethod = "dpaa"\n')
    assert trials_behind(tmp_path / "other.toml") == 0


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=12))
def test_the_front_is_what_nothing_dominates(points: list[tuple[int, int]]) -> None:
    goal = TuningGoal(("ndcg@20", "arp@20"))  # more of the first, less of the second
    trials = [
        Trial(number, "complete", {}, one, 1.0, metrics={"ndcg@20": float(one), "arp@20": float(other)})
        for number, (one, other) in enumerate(points)
    ]
    front = [points[trial.number] for trial in goal.front(trials)]
    slow = {
        (one, other)
        for one, other in points
        if not any((a >= one and b <= other) and (a, b) != (one, other) for a, b in points)
    }
    assert front == sorted(slow, reverse=True)


def test_one_metric_under_a_limit() -> None:
    goal = TuningGoal.parse("recall@20/niche", "ndcg@20=2%")
    known = [(0.1, 0.5), (0.3, 0.45), (0.2, 0.4901), (0.15, 0.495)]
    trials = [
        Trial(number, "complete", {}, niche, 1.0, metrics={"recall@20/niche": niche, "ndcg@20": ndcg})
        for number, (niche, ndcg) in enumerate(known)
    ]
    assert [one.number for one in goal.front([*trials, Trial(9, "pruned", {}, 0.9, 1.0)])] == [2]
    others = [one.metrics for one in trials]
    values = [goal.objective_values(one.metrics, others)[0] for one in trials]
    assert sorted(range(4), key=lambda number: values[number]) == [1, 0, 3, 2]  # what loses too much comes below all
    low = TuningGoal.parse(None, "arp@20=0.1")
    assert low.violation({"arp@20": 110.0}, [{"arp@20": 100.0}]) == 0
    assert low.violation({"arp@20": 120.0}, [{"arp@20": 100.0}]) == pytest.approx(0.1)


def test_every_metric_of_the_table_can_be_searched_for(world: Dataset) -> None:
    model = dpaa.fit(world, "most-popular")
    keys = [f"{name}@{k}" for name in METRICS for k in (5, 20)] + ["recall@20/niche", "ndcg@5/popular"]
    wanted = Evaluator(world, (5, 20), "valid", "drop").evaluate(model.method).metrics
    for first in range(0, len(keys), 2):
        pair = tuple(keys[first : first + 2])
        goal = TuningGoal.parse(pair, None)
        assert goal.measure(model.method, world) == {key: wanted[key] for key in pair}
        for key, merit in zip(pair, goal.merits(wanted), strict=True):
            sign = {"high": wanted[key], "low": -wanted[key], "zero": -abs(wanted[key])}[metric_of(key)[0].better]
            assert merit == sign


@pytest.mark.parametrize(
    ("metrics", "limits", "sentence"),
    [
        (["recall@1٣"], [], "there is no metric 'recall@1٣'"),
        (["recall@20/odd"], [], "there is no metric 'recall@20/odd'"),
        (["gini@20/niche"], [], "there is no metric 'gini@20/niche'"),
        (["recall@20", "ndcg@20", "arp@20"], [], "one metric or two, got 3"),
        (["recall@20", "recall@20"], [], "named twice"),
        (["recall@20"], ["ndcg@20=0.0_2"], "the largest loss is KEY=SHARE"),
        (["recall@20"], ["ndcg@20=200%"], "the largest loss is KEY=SHARE"),
        (["recall@20"], ["popularity_lift@20=2%"], "nothing can be lost"),
    ],
)
def test_what_cannot_be_searched_for(metrics: list[str], limits: list[str], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        TuningGoal.parse(metrics, limits)


def test_two_metrics_end_in_files_of_hyperparameters(world: Dataset, tmp_path: Path) -> None:
    how: dict[str, Any] = {"trials": 4, "settings": TINY, "values": FEW}
    result = tune(tmp_path / "study", world, "lightgcn", metric=["ndcg@20", "arp@20"], **how)
    assert result.runs == []
    assert not (tmp_path / "study" / "best.toml").exists()
    assert len([one for one in result.trials if one.state == "complete"]) == 4
    for one in result.front:
        kept = tomllib.loads((tmp_path / "study" / "pareto" / f"trial-{one.number}.toml").read_text())
        assert kept == {"method": "lightgcn"} | TINY | one.settings
    own, dominated = (tmp_path / "study" / "pareto" / f"trial-{name}.toml" for name in ("mine", "99"))
    own.write_text("layers = 3\n")
    dominated.write_text("# trial 99 of 4, validation\n")
    again = tune(tmp_path / "study", world, "lightgcn", metric=["ndcg@20", "arp@20"], **how)
    assert own.exists(), "a file of the user's"
    assert not dominated.exists()
    assert (again.front, again.kept) == (result.front, 4)
    with pytest.raises(InputError, match="holds a study with another goal"):
        tune(tmp_path / "study", world, "lightgcn", metric="ndcg@20", **how)


def test_on_the_command_line(world: Dataset, tmp_path: Path) -> None:
    world.write(tmp_path / "data")
    call = ["tune", tmp_path / "data", "--method", "item-knn", "--trials", 3, "--seeds", 1]
    out = dpaa_ok(*call, "--metric", "ndcg@20", "--metric", "coverage@20", "--out", tmp_path / "both").out
    both = " ".join(out.split())
    assert "by validation ndcg@20 and coverage@20" in both
    assert "not dominated: " in both
    limit = ["--metric", "coverage@20", "--most-loss", "recall@20=50%", "--out", tmp_path / "one"]
    assert "by validation coverage@20, at most 0.5 of the best recall@20 lost" in " ".join(
        dpaa_ok(*call, *limit).out.split()
    )
    result = json.loads(dpaa_ok(*call, *limit, "--json").out)
    assert result["goal"] == {"metrics": ["coverage@20"], "most_loss": {"recall@20": 0.5}}
    trials = [line["metrics"] for line in result["trials"] if line["state"] == "complete"]
    best = max(line["recall@20"] for line in trials)
    allowed = [line["coverage@20"] for line in trials if line["recall@20"] >= best / 2]
    assert result["best"]["valid_coverage@20"] == result["runs"][0]["valid_coverage@20"] == max(allowed)
