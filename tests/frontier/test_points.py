"""Points are measured as `evaluate` measures runs."""

from __future__ import annotations

import numpy as np
import pytest

from dpaa.data.dataset import Dataset
from dpaa.data.sources import world
from dpaa.evaluation.evaluator import Evaluator
from dpaa.frontier.estimates import ESTIMATES, Accuracy
from dpaa.frontier.goals import parse_goals
from dpaa.frontier.points import Candidate, Measurer
from dpaa.ranking import RERANKERS, Dial
from dpaa.ranking.reranker import Reranker
from dpaa.ranking.rerankers.xquad import XQuAD
from dpaa.runs.fit import fit

SWEEPS = [RERANKERS[name] for name in RERANKERS.built_in]


def measurer(data: Dataset, k: int = 10, *goals: str) -> Measurer:
    users = Evaluator(data, k, "valid")
    accuracies = {name: Accuracy(users.truth, k, name) for name in ESTIMATES}
    return Measurer(users, parse_goals(goals or ["niche-recall", "coverage"]), accuracies)


def test_names() -> None:
    assert Candidate("ease").name == "ease"
    assert Candidate("ease", None, -0.5).name == "ease, dial -0.5"
    assert Candidate("ease", XQuAD(strength=0.3)).name == "ease, xquad 0.3"
    assert Candidate("auto", XQuAD(strength=0.4, depth=50), 0.25).name == "auto, dial 0.25, xquad 0.4, depth 50"
    assert Candidate("ease", Dial(kappa=-1)).name == "ease, dial, kappa -1.0"


@pytest.mark.parametrize("kind", SWEEPS, ids=lambda kind: kind.name)
def test_a_sweep_gives_the_lists_that_each_setting_gives_alone(kind: type[Reranker], small_world: Dataset) -> None:
    method = fit(small_world, "ease").method
    few = [*kind.sweep()[:3], *kind.sweep()[-1:]]
    assert few
    at = measurer(small_world)
    for candidate, found in at.lists("ease", method, few):
        alone = at.evaluator.lists(method, candidate.kappa, candidate.reranker)
        assert np.array_equal(found, alone), candidate.name


def test_all_settings_together_change_nothing(small_world: Dataset) -> None:
    """What a re-ranker keeps for the next block is its own."""
    method, at = fit(small_world, "item-knn").method, measurer(small_world)
    sweeps = [one for kind in SWEEPS if kind is not Dial for one in kind.sweep()]
    together = at.evaluator.lists_reranked(method, sweeps)
    for found, one in zip(together[::3], sweeps[::3], strict=True):
        assert np.array_equal(found, at.evaluator.lists(method, 0.0, one)), one.in_words()


def test_metrics_are_those_of_evaluate(small_world: Dataset) -> None:
    at = measurer(small_world)
    method = fit(small_world, "ease").method
    for point in at.points("ease", method, [Dial(kappa=-0.5), XQuAD(strength=0.4)]):
        expected = at.evaluator.evaluate(method, point.candidate.kappa, point.candidate.reranker).metrics
        assert {name: expected[name] for name in point.metrics} == pytest.approx(point.metrics)
        assert point.accuracy_of("logged") == pytest.approx(expected["ndcg@10"])
        assert point.values == (point.metrics["recall@10/niche"], point.metrics["coverage@10"])


def test_values_of_some_users(small_world: Dataset) -> None:
    at, method = measurer(small_world, 10, "niche-recall", "coverage", "arp"), fit(small_world, "ease").method
    (point,) = at.points("ease", method, [])
    lists = at.evaluator.lists(method, 0.0)
    assert len(at.folds) == len(point.outside) == 5
    for fold, (niche, coverage, arp) in zip(at.folds, point.outside, strict=True):
        rows = np.setdiff1d(np.arange(len(lists)), fold)
        assert coverage == len(np.unique(lists[rows])) / small_world.n_items
        assert arp == pytest.approx(small_world_counts(small_world)[lists[rows]].mean())
        each = point.per_user[0]
        assert each is not None
        assert niche == pytest.approx(np.nanmean(each[rows]))
    assert point.per_user[1] is None  # all lists have it together


def small_world_counts(data: Dataset) -> np.ndarray:
    return np.bincount(data.train.item, minlength=data.n_items)


def test_a_user_alone_and_users_without_a_niche_item(small_world: Dataset) -> None:
    at = measurer(small_world, 10, "niche-recall", "coverage")
    at.__dict__["folds"] = (np.arange(1, len(at.evaluator.users)), np.arange(len(at.evaluator.users)))
    (point,) = at.points("ease", fit(small_world, "ease").method, [])
    each = point.per_user[0]
    assert each is not None
    assert point.outside[0] == (pytest.approx(each[0], nan_ok=True), 10 / small_world.n_items)
    assert np.isnan(point.outside[1]).all()  # nobody is left


def test_a_point_keeps_numbers_of_users_and_no_lists(small_world: Dataset) -> None:
    """Lists of hundreds of points would take gigabytes."""
    at = measurer(small_world)
    (point,) = at.points("ease", fit(small_world, "ease").method, [])
    kept = [*point.accuracy.values(), *(each for each in point.per_user if each is not None)]
    assert {array.shape for array in kept} == {(len(at.evaluator.users),)}
    others = [value for name, value in vars(point).items() if name not in ("accuracy", "per_user")]
    assert not any(isinstance(value, np.ndarray) for value in others)


def test_a_catalogue_smaller_than_the_lists() -> None:
    data = world.simulate(users=40, items=15, seed=0)
    at = measurer(data, 30)
    sweeps = [one for kind in SWEEPS for one in kind.sweep()[:2]]
    method = fit(data, "ease").method
    points = list(at.points("ease", method, sweeps))
    assert len(points) == 1 + len(sweeps)
    assert {lists.shape[1] for _, lists in at.lists("ease", method, sweeps)} == {30}
    for point in points:
        assert np.isfinite(point.accuracy_of("ips"))


def test_a_run_as_it_stands_has_its_dial_and_its_re_ranker(small_world: Dataset) -> None:
    at, method = measurer(small_world), fit(small_world, "ease").method
    point = at.as_run("mine", method, -0.5, XQuAD(strength=0.3))
    assert point.candidate.name == "mine, dial -0.5, xquad 0.3"
    alone = at.evaluator.evaluate(method, -0.5, XQuAD(strength=0.3)).metrics
    assert point.metrics == pytest.approx({name: alone[name] for name in point.metrics})
