"""The curve of the popularity dial on validation, and what is chosen from it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaa.data.dataset import Dataset
from dpaa.evaluation.dial_curve import KAPPAS, DialPoint, Objective, dial_curve
from dpaa.evaluation.evaluator import Evaluator
from dpaa.methods.base import Method
from dpaa.runs.fit import fit


def point(kappa: float, ndcg: float, recall: float = 0.1, niche: float = 0.1) -> DialPoint:
    return DialPoint(kappa, ndcg, recall, niche, arp=10.0, coverage=0.5)


# ---------------------------------------------------------------------- the choice


def test_equals_go_to_the_least_turn_and_then_to_less_popularity() -> None:
    for objective in ("ndcg", "recall", "niche:5"):
        best = Objective.parse(objective).best
        assert best([point(kappa, 0.5) for kappa in (-2, -1, 0, 1, 2)]).kappa == 0
        outer = [point(kappa, 0.5, 0.5, 0.5) for kappa in (-2, -1, 1, 2)] + [point(0, 0.5, 0.4, 0.4)]
        assert best(outer).kappa == (0 if objective == "ndcg" else -1)
        assert best(outer[::-1]).kappa == (0 if objective == "ndcg" else -1)


@given(
    st.dictionaries(st.integers(-9, 9), st.tuples(*[st.floats(0, 1)] * 3), min_size=1).filter(lambda found: 0 in found),
    st.sampled_from(["ndcg", "recall", "niche:0", "niche:10", "niche:100"]),
)
def test_nothing_allowed_is_better_than_the_chosen(
    values: dict[int, tuple[float, float, float]], objective: str
) -> None:
    points = [point(float(kappa), *three) for kappa, three in values.items()]
    wanted = Objective.parse(objective)
    chosen = wanted.best(points)
    if wanted.name == "niche":
        floor = (1 - wanted.allowance) * next(one.ndcg for one in points if one.kappa == 0)
        assert chosen.ndcg >= floor
        assert all(one.niche_recall <= chosen.niche_recall for one in points if one.ndcg >= floor)
    else:
        assert all(getattr(one, wanted.name) <= getattr(chosen, wanted.name) for one in points)


# ---------------------------------------------------------------------- the curve


@pytest.fixture(scope="module", params=["lightgcn", "ease"])
def method(request: pytest.FixtureRequest, small_world: Dataset) -> Method:
    """One that ranks by an inner product, one that does not."""
    settings = {"embedding_size": 16, "layers": 2, "epochs": 5} if request.param == "lightgcn" else {}
    return fit(small_world, request.param, **settings).method


def test_every_point_is_what_the_evaluator_says_at_this_setting(method: Method, small_world: Dataset) -> None:
    validation = Evaluator(small_world, 20, "valid")
    curve = dial_curve(method, validation)
    assert [one.kappa for one in curve.points] == list(KAPPAS)
    assert curve.users == len(validation.users)
    for one in curve.points:
        found = validation.evaluate(method, one.kappa)
        assert found.protocol.popularity_dial == one.kappa
        expected = {name: found.metrics[name] for name in one.named(20) if name != "kappa"}
        assert {name: value for name, value in one.named(20).items() if name != "kappa"} == pytest.approx(
            expected, rel=2e-3
        )  # two scores that tie to rounding may change places between the two ways of computing them


def test_the_mean_popularity_of_lists_never_falls(method: Method, small_world: Dataset) -> None:
    arp = [one.arp for one in dial_curve(method, Evaluator(small_world, 20, "valid")).points]
    assert (np.diff(arp) >= -1e-9).all()
    assert arp[-1] > 1.2 * arp[KAPPAS.index(0.0)]
