"""The curve of the popularity dial on validation, and what is chosen from it."""

import contextlib
import json
from dataclasses import replace
from math import nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaa import Dataset, InputError, fit
from dpaa._text import finite
from dpaa.evaluation.dial_curve import (
    KAPPAS,
    DialCurve,
    DialPoint,
    _best_point,
    active_kappa,
    check_objective,
    dial_curve,
)
from dpaa.evaluation.evaluator import Evaluator
from dpaa.evaluation.offpolicy import ValidationExposure
from dpaa.methods.base import Method


def point(kappa: float, ndcg: float, recall: float = 0.1, niche: float = 0.1) -> DialPoint:
    return DialPoint(kappa, ndcg, recall, niche, arp=10.0, coverage=0.5)


def drawn(*points: DialPoint, objective: str = "ndcg") -> DialCurve:
    exposure = ValidationExposure(False, True, 0.4)
    return DialCurve(points, objective, 20, 5, exposure, _best_point(points, objective).kappa, 0.0)


@pytest.mark.parametrize("text", ["", "NDCG", "niche:", "niche:-1", "niche:101", "niche:nan", "ndcg:5"])
def test_what_is_no_objective(text: str) -> None:
    with pytest.raises(InputError, match="ndcg, recall or niche:X"):
        check_objective(text)


def test_equals_go_to_the_least_turn_and_then_to_less_popularity() -> None:
    for objective in ("ndcg", "recall", "niche:5"):
        assert _best_point([point(kappa, 0.5) for kappa in (-2, -1, 0, 1, 2)], objective).kappa == 0
        outer = [point(kappa, 0.5, 0.5, 0.5) for kappa in (-2, -1, 1, 2)] + [point(0, 0.5, 0.4, 0.4)]
        assert _best_point(outer, objective).kappa == (0 if objective == "ndcg" else -1)
        assert _best_point(outer[::-1], objective).kappa == (0 if objective == "ndcg" else -1)


@given(
    st.dictionaries(st.integers(-9, 9), st.tuples(*[st.floats(0, 1)] * 3), min_size=1).filter(lambda found: 0 in found),
    st.sampled_from(["ndcg", "recall", "niche:0", "niche:10", "niche:100"]),
)
def test_nothing_allowed_beats_the_chosen(values: dict[int, tuple[float, float, float]], objective: str) -> None:
    points = [point(float(kappa), *three) for kappa, three in values.items()]
    name, allowance = check_objective(objective)
    chosen = _best_point(points, objective)
    if name == "niche_recall":
        floor = (1 - allowance) * next(one.ndcg for one in points if one.kappa == 0)
        assert chosen.ndcg >= floor
        assert all(one.niche_recall <= chosen.niche_recall for one in points if one.ndcg >= floor)
    else:
        assert all(getattr(one, name) <= getattr(chosen, name) for one in points)


@pytest.mark.parametrize("wrong", [None, "1", True, nan, 1e4, [0.0]])
def test_a_stored_setting_that_is_none_is_refused(wrong: object) -> None:
    with pytest.raises(InputError, match=r"popularity dial is damaged .* choose it again with"):
        active_kappa({"kappa": wrong, "suggested": 0.0})
    with pytest.raises(InputError, match="popularity dial is damaged"):
        active_kappa({"suggested": 0.0})


@pytest.mark.parametrize("niche", [0.1, nan])
@pytest.mark.parametrize("tilt", [None, 0.7])
def test_json_and_back(niche: float, tilt: float | None) -> None:
    curve = replace(
        drawn(point(-1, 0.5, niche=niche), point(0, 0.3, niche=niche), objective="niche:5"),
        exposure=ValidationExposure(True, False, tilt),
    )
    again = DialCurve.from_json(json.loads(json.dumps(finite(curve.as_json()), allow_nan=False)))
    assert again.as_json() | {"curve": None} == curve.as_json() | {"curve": None}
    assert finite(again.as_json()) == finite(curve.as_json())


GOOD = finite(drawn(point(-1, 0.5), point(0, 0.3)).as_json())
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**400), 10**400) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(key=st.sampled_from(sorted(GOOD)), value=values, whole=st.booleans(), inner=st.booleans())
def test_a_damaged_curve_is_wrong_input_and_nothing_else(key: str, value: object, whole: bool, inner: bool) -> None:
    point_key = sorted(GOOD["curve"][0])[len(str(value)) % len(GOOD["curve"][0])]
    damaged: object = value if whole else GOOD | {key: value}
    if inner:
        damaged = GOOD | {"curve": [GOOD["curve"][1], GOOD["curve"][0] | {point_key: value}]}
    with contextlib.suppress(InputError):
        DialCurve.from_json(damaged).in_words()


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
