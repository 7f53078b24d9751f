"""What a search is for: any metric, two of them, or one while others must not be lost."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpaa
from dpaa.data.dataset import Dataset
from dpaa.errors import InputError
from dpaa.evaluation.evaluator import Evaluator
from dpaa.evaluation.metrics import METRICS
from dpaa.tuning.goal import RECALL, MostLoss, TuningGoal, metric_of
from dpaa.tuning.trial import Trial
from dpaa.tuning.tune import tune
from tests.command import dpaa_ok
from tests.tuning.conftest import FEW, TINY


def trial(number: int, state: str = "complete", **metrics: float) -> Trial:
    named = {f"{name}@20": value for name, value in metrics.items()}
    return Trial(number, state, {}, next(iter(named.values()), None), 1.0, metrics=named)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=12))
def test_the_front_is_what_nothing_dominates(points: list[tuple[int, int]]) -> None:
    goal = TuningGoal(("ndcg@20", "arp@20"))  # more of the first, less of the second
    trials = [trial(number, ndcg=one, arp=other) for number, (one, other) in enumerate(points)]
    found = [points[one.number] for one in goal.front(trials)]
    slow = {
        (one, other)
        for one, other in points
        if not any((a >= one and b <= other) and (a, b) != (one, other) for a, b in points)
    }
    assert set(found) == slow
    assert found == sorted(found, reverse=True)
    assert len(found) == len(set(found))


def test_one_metric_under_a_limit() -> None:
    goal = TuningGoal.parse("recall@20/niche", "ndcg@20=2%")
    known = [(0.1, 0.5), (0.3, 0.45), (0.2, 0.4901), (0.15, 0.495)]
    trials = [
        Trial(number, "complete", {}, niche, 1.0, metrics={"recall@20/niche": niche, "ndcg@20": ndcg})
        for number, (niche, ndcg) in enumerate(known)
    ]
    assert [one.number for one in goal.front([*trials, trial(9, "pruned")])] == [2]
    others = [one.metrics for one in trials]
    told = [goal.told(one.metrics, others)[0] for one in trials]
    assert sorted(range(4), key=lambda number: told[number]) == [1, 0, 3, 2]  # what loses too much comes below all
    low = MostLoss.parse("arp@20=0.1")
    assert low.violation(110.0, 100.0) == 0
    assert low.violation(120.0, 100.0) == pytest.approx(0.1)


def test_every_metric_of_the_table_can_be_searched_for(world: Dataset) -> None:
    model = dpaa.fit(world, "most-popular")
    keys = [f"{name}@{k}" for name in METRICS for k in (5, 20)] + ["recall@20/niche", "ndcg@5/popular"]
    wanted = Evaluator(world, (5, 20), "valid", "drop").evaluate(model.method).metrics
    for place in range(0, len(keys), 2):
        pair = tuple(keys[place : place + 2])
        goal = TuningGoal(pair)
        assert goal.measure(model.method, world) == {key: wanted[key] for key in pair}
        for key, merit in zip(pair, goal.merits(wanted), strict=True):
            sign = {"high": wanted[key], "low": -wanted[key], "zero": -abs(wanted[key])}[metric_of(key)[0].better]
            assert merit == sign


@pytest.mark.parametrize(
    ("metrics", "limits", "sentence"),
    [
        (["precision"], [], "there is no metric 'precision'"),
        (["recall@0"], [], "there is no metric 'recall@0'"),
        (["recall@1٣"], [], "there is no metric 'recall@1٣'"),
        (["recall@20"], ["ndcg@20=0.0_2"], "the largest loss is KEY=SHARE"),
        (["recall@20/odd"], [], "there is no metric 'recall@20/odd'"),
        (["gini@20/niche"], [], "there is no metric 'gini@20/niche'"),
        (["recall@20", "ndcg@20", "arp@20"], [], "one metric or two, got 3"),
        (["recall@20", "recall@20"], [], "named twice"),
        (["recall@20"], ["ndcg@20"], "the largest loss is KEY=SHARE"),
        (["recall@20"], ["ndcg@20=200%"], "the largest loss is KEY=SHARE"),
        (["recall@20"], ["popularity_lift@20=2%"], "nothing can be lost"),
    ],
)
def test_what_cannot_be_searched_for(metrics: list[str], limits: list[str], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        TuningGoal.parse(metrics, limits)


def test_two_metrics_end_in_files_of_settings(world: Dataset, tmp_path: Path) -> None:
    how = {"trials": 4, "settings": TINY, "values": FEW}
    found = tune(tmp_path / "study", world, "lightgcn", metric=["ndcg@20", "arp@20"], **how)  # type: ignore[arg-type]
    assert found.runs == []
    assert not (tmp_path / "study" / "best.toml").exists()
    points = {one.number: one.metrics for one in found.trials if one.state == "complete"}
    assert len(points) == 4
    for one in found.front:
        assert not any(
            other["ndcg@20"] > one.metrics["ndcg@20"] and other["arp@20"] < one.metrics["arp@20"]
            for other in points.values()
        )
        kept = tomllib.loads((tmp_path / "study" / "pareto" / f"trial-{one.number}.toml").read_text())
        assert kept == {"method": "lightgcn"} | TINY | one.settings
    assert len(list((tmp_path / "study" / "pareto").iterdir())) == len(found.front)
    own, dominated = (tmp_path / "study" / "pareto" / f"trial-{name}.toml" for name in ("mine", "99"))
    own.write_text("layers = 3\n")
    dominated.write_text("# trial 99 of 4, validation\n")
    again = tune(tmp_path / "study", world, "lightgcn", metric=["ndcg@20", "arp@20"], **how)  # type: ignore[arg-type]
    assert own.exists(), "a file of the user's"
    assert not dominated.exists()
    assert again.front == found.front
    assert again.kept == 4
    with pytest.raises(InputError, match="holds a study with another goal"):
        tune(tmp_path / "study", world, "lightgcn", metric="ndcg@20", **how)  # type: ignore[arg-type]


def test_on_the_command_line(world: Dataset, tmp_path: Path) -> None:
    world.write(tmp_path / "data")
    call = ["tune", tmp_path / "data", "--method", "item-knn", "--trials", 3, "--seeds", 1]
    said = dpaa_ok(*call, "--metric", "ndcg@20", "--metric", "coverage@20", "--out", tmp_path / "both").out
    both = " ".join(said.split())
    assert "by validation ndcg@20 and coverage@20" in both
    assert "not dominated: " in both
    limit = ["--metric", "coverage@20", "--most-loss", "recall@20=50%", "--out", tmp_path / "one"]
    one = " ".join(dpaa_ok(*call, *limit).out.split())
    assert "by validation coverage@20, at most 0.5 of the best recall@20 lost" in one
    told = json.loads(dpaa_ok(*call, *limit, "--json").out)
    assert told["goal"] == {"metrics": ["coverage@20"], "most_loss": {"recall@20": 0.5}}
    trials = [line["metrics"] for line in told["trials"] if line["state"] == "complete"]
    best = max(line["recall@20"] for line in trials)
    fine = [line["coverage@20"] for line in trials if line["recall@20"] >= best / 2]
    assert told["best"]["valid_coverage@20"] == max(fine)
    assert told["runs"][0]["valid_coverage@20"] == told["best"]["valid_coverage@20"]
    assert TuningGoal() == RECALL
