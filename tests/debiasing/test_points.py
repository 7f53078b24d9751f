"""Estimates of accuracy, goals, and points that are measured as `evaluate` measures runs."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dpaa import Dataset, InputError, fit
from dpaa.data.pairs import Pairs
from dpaa.debiasing._points import EXPOSURES, OFFERED, Accuracy, Goal, Measurer, parse_goals, plausible_powers
from dpaa.evaluation.evaluator import Evaluator
from dpaa.evaluation.offpolicy import fitted_power
from dpaa.ranking import RERANKERS, Dial, Reranker
from dpaa.ranking.rerankers.xquad import XQuAD
from tests.debiasing.made import truth_of

SECOND = 1 / math.log2(3)
SWEEPS = [kind for kind in map(RERANKERS.__getitem__, RERANKERS.built_in) if kind.sweep()]  # fairrec has none


def test_estimates_by_hand() -> None:
    # Counts 16, 4, 1: inverse propensities (power ½) 1, 2, 4.  User 0 likes items 0 and 2, user 1 likes items 1 and 2.
    truth = truth_of([{0, 2}, {1, 2}], [16, 4, 1, 0])
    at = truth.context(np.array([[0, 3], [3, 1]]))
    ips = Accuracy(truth, 2, 0.5)
    assert ips.weight.tolist() == [1, 2, 4, 4]
    shares = np.array([2.5, 3.0]) / 2.75
    expected = shares * [1 / (4 + SECOND), 2 * SECOND / (4 + 2 * SECOND)]
    assert ips.of(at) == pytest.approx(expected)
    about = ips.as_json()
    assert about["effective_sample_size"] == pytest.approx((1 + 4 + 2 + 4) ** 2 / (1 + 16 + 4 + 16))
    assert (about["name"], about["pairs"]) == ("ips 0.5", 4)
    assert Accuracy(truth, 2).of(at) == pytest.approx([1 / (1 + SECOND), SECOND / (1 + SECOND)])


def test_which_powers_count(small_world: Dataset) -> None:
    assert plausible_powers("unknown", small_world, biased=True) == (0.0, 0.5)
    assert plausible_powers("as-logged", small_world, biased=True) == (0.0,)
    assert plausible_powers("shifted", small_world, biased=True) == (0.5,)
    for exposure in EXPOSURES:
        assert plausible_powers(exposure, small_world, biased=False) == (0.0,)


@pytest.mark.parametrize("power", [0.0, 0.3, 0.7, 1.0])
def test_the_power_is_found_again_in_pairs_of_randomised_exposure(power: float, small_world: Dataset) -> None:
    counts = np.bincount(small_world.train.item, minlength=small_world.n_items)
    rng, taste = np.random.default_rng(0), counts.astype(float) ** (1 - power) * (counts > 0)
    liked = rng.choice(len(counts), 20_000, p=taste / taste.sum())
    assert fitted_power(counts, liked) == pytest.approx(power, abs=0.03)
    sample = Pairs.of(np.arange(20_000) % small_world.n_users, liked)
    fitted = plausible_powers("unknown", replace(small_world, randomised=sample), biased=True)  # pairs count once
    assert fitted == tuple(sorted({0.0, round(fitted_power(counts, sample.item), 2)}))


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


def measurer(data: Dataset, k: int = 10) -> Measurer:
    users = Evaluator(data, k, "valid")
    goals, everybody = parse_goals(["niche-recall", "coverage", "arp"]), np.arange(len(users.users))
    return Measurer(
        users, goals, (Accuracy(users.truth, k), Accuracy(users.truth, k, 0.5)), [everybody[1::2], everybody]
    )


@pytest.mark.parametrize("kind", SWEEPS, ids=lambda kind: kind.name)
def test_a_sweep_gives_the_lists_that_each_strength_gives_alone(
    kind: type[Reranker], small_world: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Measurer, "point", lambda _self, candidate, lists: (candidate, lists))
    method = fit(small_world, "ease").method
    few = [*kind.sweep()[:3], *kind.sweep()[-1:]]
    assert few
    at = measurer(small_world)
    for candidate, lists in at.swept("ease", method, few):  # type: ignore[misc]
        alone = at.evaluator.lists(method, candidate.kappa, candidate.reranker)
        assert np.array_equal(lists, alone), candidate.name


def test_metrics_are_those_of_evaluate(small_world: Dataset) -> None:
    at, method = measurer(small_world), fit(small_world, "ease").method
    for point in [at.plain("ease", method), *at.swept("ease", method, [Dial(kappa=-0.5), XQuAD(strength=0.4)])]:
        expected = at.evaluator.evaluate(method, point.candidate.kappa, point.candidate.reranker).metrics
        assert {name: expected[name] for name in point.metrics} == pytest.approx(point.metrics)
        assert point.accuracy[0].mean() == pytest.approx(expected["ndcg@10"])
        names = ("recall@10/niche", "coverage@10", "arp@10")
        assert point.values[-1] == tuple(point.metrics[name] for name in names)
        of_half = at.evaluator.of_rows(at.parts[0])
        half = of_half.evaluate(method, point.candidate.kappa, point.candidate.reranker).metrics
        assert point.values[0] == pytest.approx(tuple(half[name] for name in names))
