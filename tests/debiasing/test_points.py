"""Estimates of accuracy, goals, and points that are measured as `evaluate` measures runs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaa.data.dataset import Dataset
from dpaa.data.sources import world
from dpaa.debiasing._points import ESTIMATES, OFFERED, Accuracy, Candidate, Goal, Measurer, parse_goals
from dpaa.errors import InputError
from dpaa.evaluation.context import GroundTruth
from dpaa.evaluation.evaluator import Evaluator
from dpaa.ranking import RERANKERS, Dial
from dpaa.ranking.reranker import Reranker
from dpaa.ranking.rerankers.xquad import XQuAD
from dpaa.runs.fit import fit
from tests.debiasing.made import truth_of

SECOND = 1 / math.log2(3)
SWEEPS = [RERANKERS[name] for name in RERANKERS.built_in]


def test_estimates_by_hand() -> None:
    # Counts 16, 4, 1: inverse propensities (power ½) 1, 2, 4.  User 0 likes items 0 and 2, user 1 likes items 1 and 2.
    truth = truth_of([{0, 2}, {1, 2}], [16, 4, 1, 0])
    at = truth.context(np.array([[0, 3], [3, 1]]))
    ips = Accuracy(truth, 2, "ips")
    assert ips.weight.tolist() == [1, 2, 4, 4]
    shares = np.array([2.5, 3.0]) / 2.75
    expected = shares * [1 / (4 + SECOND), 2 * SECOND / (4 + 2 * SECOND)]
    assert ips.of(at) == pytest.approx(expected)
    about = ips.as_json()
    assert about["effective_sample_size"] == pytest.approx((1 + 4 + 2 + 4) ** 2 / (1 + 16 + 4 + 16))
    assert (about["power"], about["pairs"]) == (0.5, 4)
    balanced = Accuracy(truth, 2, "balanced")
    assert balanced.weight.tolist() == [1, 1, 0.5, 1]
    assert balanced.of(at) == pytest.approx([1 / (1 + 0.5 * SECOND), SECOND / (1 + 0.5 * SECOND)])
    assert Accuracy(truth, 2).of(at) == pytest.approx([1 / (1 + SECOND), SECOND / (1 + SECOND)])


def slow_accuracy(truth: GroundTruth, lists: list[list[int]], weight: list[float], k: int) -> float:
    """Σ_u W_u ndcg_u / Σ_u W_u, one pair at a time."""
    above, below = 0.0, 0.0
    for row, items in enumerate(lists):
        liked = [int(key % truth.n_items) for key in truth.relevant if key // truth.n_items == row]
        gained = sum(weight[item] / math.log2(rank + 2) for rank, item in enumerate(items) if item in liked)
        best = sorted((weight[item] for item in liked), reverse=True)[:k]
        mean = sum(weight[item] for item in liked) / len(liked)
        above += mean * gained / sum(one / math.log2(rank + 2) for rank, one in enumerate(best))
        below += mean
    return above / below


@st.composite
def worlds(draw: st.DrawFn) -> tuple[GroundTruth, list[list[int]], int]:
    n_items, n_users, k = draw(st.integers(2, 7)), draw(st.integers(1, 5)), draw(st.integers(1, 4))
    items = st.integers(0, n_items - 1)
    relevant = [draw(st.sets(items, min_size=1)) for _ in range(n_users)]
    counts = draw(st.lists(st.integers(0, 50), min_size=n_items, max_size=n_items))
    drawn = [draw(st.lists(items, unique=True, max_size=k)) for _ in range(n_users)]
    return truth_of(relevant, counts), [one + [-1] * (k - len(one)) for one in drawn], k  # lists may end early


@given(worlds(), st.sampled_from(sorted(ESTIMATES)))
def test_the_slow_twin(world: tuple[GroundTruth, list[list[int]], int], estimate: str) -> None:
    truth, lists, k = world
    made = Accuracy(truth, k, estimate)
    assert made.of(truth.context(np.array(lists))).mean() == pytest.approx(
        slow_accuracy(truth, lists, made.weight.tolist(), k)
    )


def test_goals() -> None:
    keys = [Goal.parse(name).key(5) for name in OFFERED]
    assert keys == ["recall@5/niche", "coverage@5", "arp@5", "gini@5", "upd@5"]
    assert Goal.parse(" Recall/Niche ").key(5) == keys[0]
    for text in ("ndcg", "arp/niche", "niche", "", "coverage@5"):
        with pytest.raises(InputError, match="there is no goal"):
            Goal.parse(text)
    for texts in (["niche-recall", "recall/niche"], []):
        with pytest.raises(InputError, match="name at least one goal, and each once"):
            parse_goals(texts)
    assert Goal.parse("aplt").score(0.3) == 0.3
    assert Goal.parse("arp").score(30.0) == -30.0
    lift = Goal.parse("popularity_lift")  # the closer to 0, the better
    assert lift.score(-0.2) == lift.score(0.2) > lift.score(0.5)
    assert Goal.parse("aplt").score(float("nan")) == -np.inf


def test_goals_by_hand() -> None:
    # Counts 8, 1, 1: item 0 is popular.  User 0 likes items 0 and 1, user 1 only the popular one.
    at = truth_of([{0, 1}, {0}], [8, 1, 1]).context(np.array([[1, 2], [0, 1]]))
    assert Goal.parse("niche-recall").of(at) == pytest.approx([1.0, np.nan], nan_ok=True)
    assert Goal.parse("coverage").of(at) == 1.0


def measurer(data: Dataset, k: int = 10, estimate: str = "logged") -> Measurer:
    users = Evaluator(data, k, "valid")
    return Measurer(users, parse_goals(["niche-recall", "coverage", "arp"]), Accuracy(users.truth, k, estimate))


def test_names_of_candidates() -> None:
    assert Candidate("ease").name == "ease"
    assert Candidate("ease", None, -0.5).name == "ease, dial -0.5"
    assert Candidate("ease", XQuAD(strength=0.3)).name == "ease, xquad 0.3"
    assert Candidate("mine", XQuAD(strength=0.4, depth=50), 0.25).name == "mine, dial 0.25, xquad 0.4, depth 50"
    assert Candidate("ease", Dial(kappa=-1)).name == "ease, dial, kappa -1.0"


@pytest.mark.parametrize("kind", SWEEPS, ids=lambda kind: kind.name)
def test_a_sweep_gives_the_lists_that_each_strength_gives_alone(
    kind: type[Reranker], small_world: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Measurer, "point", lambda _self, candidate, lists: (candidate, lists))
    method = fit(small_world, "ease").method
    few = [*kind.sweep()[:3], *kind.sweep()[-1:]]
    assert few
    at = measurer(small_world)
    for candidate, lists in at.points("ease", method, few):  # type: ignore[misc]
        alone = at.evaluator.lists(method, candidate.kappa, candidate.reranker)
        assert np.array_equal(lists, alone), candidate.name


def test_metrics_are_those_of_evaluate(small_world: Dataset) -> None:
    at, method = measurer(small_world), fit(small_world, "ease").method
    for point in at.points("ease", method, [Dial(kappa=-0.5), XQuAD(strength=0.4)]):
        expected = at.evaluator.evaluate(method, point.candidate.kappa, point.candidate.reranker).metrics
        assert {name: expected[name] for name in point.metrics} == pytest.approx(point.metrics)
        assert point.accuracy.mean() == pytest.approx(expected["ndcg@10"])
        assert point.values == tuple(point.metrics[name] for name in ("recall@10/niche", "coverage@10", "arp@10"))


def test_values_of_some_users(small_world: Dataset) -> None:
    at, method = measurer(small_world), fit(small_world, "ease").method
    (point,) = at.points("ease", method, [])
    lists = at.evaluator.lists(method, 0.0)
    niche_of_users = Goal.parse("niche-recall").of(at.evaluator.truth.context(lists.astype(np.int32)))
    counts = np.bincount(small_world.train.item, minlength=small_world.n_items)
    assert len(at.folds) == len(point.outside) == 5
    for fold, (niche, coverage, arp) in zip(at.folds, point.outside, strict=True):
        rows = np.setdiff1d(np.arange(len(lists)), fold)
        assert coverage == len(np.unique(lists[rows])) / small_world.n_items
        assert arp == pytest.approx(counts[lists[rows]].mean())
        assert niche == pytest.approx(np.nanmean(np.asarray(niche_of_users)[rows]))


def test_a_catalogue_smaller_than_the_lists() -> None:
    data = world.simulate(users=40, items=15, seed=0)
    at, method = measurer(data, 30, "ips"), fit(data, "ease").method
    sweeps = [one for kind in SWEEPS for one in kind.sweep()[:2]]
    points = at.points("ease", method, sweeps)
    assert len(points) == 1 + len(sweeps)
    assert all(np.isfinite(point.accuracy.mean()) for point in points)
