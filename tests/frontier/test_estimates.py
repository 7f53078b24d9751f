"""Three estimates of accuracy: by hand, against a slow twin, and where they agree."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaa.errors import InputError
from dpaa.evaluation.context import GroundTruth
from dpaa.evaluation.offpolicy import ValidationExposure
from dpaa.evaluation.metrics import ndcg
from dpaa.frontier.estimates import ESTIMATES, Accuracy, default_estimate
from tests.frontier.made import truth_of

SECOND = 1 / math.log2(3)


def test_by_hand() -> None:
    # Counts 16, 4, 1: inverse propensities (power ½) 1, 2, 4.  User 0 likes items 0 and 2, user 1 likes items 1 and 2.
    truth = truth_of([{0, 2}, {1, 2}], [16, 4, 1, 0])
    at = truth.context(np.array([[0, 3], [3, 1]]))
    ips = Accuracy(truth, 2, "ips")
    assert ips.weight.tolist() == [1, 2, 4, 4]
    shares = np.array([2.5, 3.0]) / 2.75
    expected = shares * [1 / (4 + SECOND), 2 * SECOND / (4 + 2 * SECOND)]
    assert ips.of(at) == pytest.approx(expected)
    assert ips.effective_sample_size == pytest.approx((1 + 4 + 2 + 4) ** 2 / (1 + 16 + 4 + 16))
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
    lists = []
    for _ in range(n_users):
        found = draw(st.lists(items, unique=True, max_size=k))
        lists.append(found + [-1] * (k - len(found)))  # lists may end early
    return truth_of(relevant, counts), lists, k


@given(worlds(), st.sampled_from(ESTIMATES))
def test_the_slow_twin(world: tuple[GroundTruth, list[list[int]], int], estimate: str) -> None:
    truth, lists, k = world
    made = Accuracy(truth, k, estimate)  # type: ignore[arg-type]
    found = made.of(truth.context(np.array(lists)))
    assert found.mean() == pytest.approx(slow_accuracy(truth, lists, made.weight.tolist(), k))
    assert made.share.mean() == pytest.approx(1)


@given(worlds())
def test_with_equal_weights_it_is_the_usual_ndcg(world: tuple[GroundTruth, list[list[int]], int]) -> None:
    truth, lists, k = world
    at = truth.context(np.array(lists))
    assert Accuracy(truth, k).of(at) == pytest.approx(ndcg(at))
    assert Accuracy(truth, k, "ips", power=0.0).of(at) == pytest.approx(ndcg(at))
    assert Accuracy(truth, k, "ips", floor=1.0).of(at) == pytest.approx(ndcg(at))


def test_which_is_used_and_what_is_said() -> None:
    assert default_estimate(ValidationExposure(False, True, None)) == "logged"
    assert default_estimate(ValidationExposure(True, True, None)) == "ips"
    truth = truth_of([{0, 2}, {1, 2}], [16, 4, 1, 0])
    ips = Accuracy(truth, 2, "ips")
    assert "an effective 3 of 4 validation pairs" in ips.notes()[0]
    assert ips.as_json()["power"] == 0.5
    assert "power" not in Accuracy(truth, 2).as_json()
    assert Accuracy(truth_of([set(range(200))], np.ones(200)), 2).notes() == []
    with pytest.raises(InputError, match="must be one of logged, ips, balanced"):
        Accuracy(truth, 2, "best")  # type: ignore[arg-type]
