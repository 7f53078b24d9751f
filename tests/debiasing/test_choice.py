"""The frontier and the choice: by hand, by law, against a slow twin, and how often a promise holds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaa.comparison.statistics import crossed_t
from dpaa.debiasing._choice import CERTAINTIES, Chooser, _pareto, relative_change
from dpaa.debiasing._points import parse_goals, user_folds
from tests.debiasing.made import chooser, made_point

NUMBERS = st.lists(
    st.tuples(st.integers(0, 5), st.one_of(st.integers(0, 5), st.just(-np.inf))), min_size=1, max_size=12
)


@given(NUMBERS)
def test_the_frontier_is_what_no_other_point_beats(points: list[tuple[float, float]]) -> None:
    line = _pareto(*np.array(points, dtype=np.float64).T)
    slow = {
        one for one in points if not any(other != one and other[0] >= one[0] and other[1] >= one[1] for other in points)
    }
    assert {points[index] for index in line} == slow
    assert len(line) == len(slow)  # of equals one
    assert [points[index] for index in line] == sorted(slow, key=lambda one: -one[0])


# ---------------------------------------------------------------------- changes


def test_a_relative_change_by_hand() -> None:
    # Means 2 and 4: −50%.  one − ½ other is ±1: standard deviation √(4/3), of the mean half of it, in shares of 4.
    one, other = np.array([1.0, 3.0, 1.0, 3.0]), np.full(4, 4.0)
    change = relative_change(one, other)
    error = np.sqrt(4 / 3) / 2 / 4
    assert change.estimate == -0.5
    assert (change.low, change.high) == pytest.approx((-0.5 - 3.1824463 * error, -0.5 + 3.1824463 * error))
    for few, level in (([1.0], [1.0]), ([1.0, 2.0], [0.0, 0.0])):
        assert np.isnan(relative_change(np.array(few), np.array(level)).estimate)


def test_the_interval_of_a_ratio_holds_it_in_95_percent_of_draws() -> None:
    held = 0
    for draw in range(400):
        rng = np.random.default_rng(draw)
        other = rng.gamma(1.0, 1.0, 200)
        change = relative_change(1.6 * rng.gamma(1.0, 1.0, 200), other)
        held += change.low <= 0.6 <= change.high
    assert 0.92 <= held / 400 <= 0.98  # 0.89 where the level is taken as known


# ---------------------------------------------------------------------- within a promise


def users(n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng([n, seed])
    return np.where(rng.random(n) < 0.5, rng.random(n), 0.0)


def test_a_point_that_everybody_loses_little_by_is_chosen() -> None:
    base = users(200)
    choice = chooser([base, 0.985 * base, 0.97 * base, 0.99 * base], [0.1, 0.2, 0.3, 0.2]).within(0.98)
    assert choice.index == 3  # of equals the most accurate
    assert choice.why == "the best for the goal that is confirmed at 95% to keep 0.98 of the baseline's accuracy"
    assert choice.confirmation is not None
    assert choice.confirmation.change.estimate == pytest.approx(-0.01)
    assert choice.confirmation.users == 200


def test_what_a_few_users_cannot_confirm_is_a_guess() -> None:
    rng = np.random.default_rng(3)
    base = users(60)
    other = base + rng.normal(0.0, 0.3, 60)
    other += 0.05 - (other - base).mean()
    some = chooser([base, other], [0.1, 0.2])
    choice = some.within(0.99)
    assert choice.index == 0
    assert choice.confirmation is not None
    assert choice.confirmation.certainty is None
    assert "could be confirmed at 95% to keep 0.99 of the baseline's accuracy, by 60 validation users" in choice.why
    assert some.within(0.99, 0.5).index == 1


def test_users_never_choose_for_themselves() -> None:
    """Values of the users of a fold change nothing about what is chosen for them."""
    rng = np.random.default_rng(0)
    base = users(100)
    others = np.array([base + rng.normal(0.02, 0.05, 100) for _ in range(4)])
    before = chooser([base, *others], [0.1, 0.2, 0.3, 0.4, 0.5])
    fold = before.folds[2]
    others[:, fold] = rng.random((4, len(fold)))
    after = chooser([base, *others], [0.1, 0.2, 0.3, 0.4, 0.5])
    rows = np.setdiff1d(np.arange(100), fold)
    rules = [one._rule(0.95, len(rows), rows, one.outside[2]) for one in (before, after)]
    assert [rules[0](one) for one in CERTAINTIES] == [rules[1](one) for one in CERTAINTIES]


def test_folds_are_a_partition_that_depends_on_the_seed_alone() -> None:
    folds = user_folds(23, 0)
    assert sorted(np.concatenate(folds).tolist()) == list(range(23))
    assert [fold.tolist() for fold in folds] == [fold.tolist() for fold in user_folds(23, 0)]
    assert [fold.tolist() for fold in folds] != [fold.tolist() for fold in user_folds(23, 1)]
    assert [len(fold) for fold in user_folds(3, 0)] == [1, 1, 1]


@given(st.integers(0, 10_000), st.sampled_from([0.5, 0.8, 0.95]), st.sampled_from([0.9, 0.98, 1.0]))
def test_what_is_chosen_was_confirmed_and_is_within_the_promise(seed: int, confidence: float, keep: float) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 80))
    base = users(n, seed)
    others = [base * rng.uniform(0.9, 1.1) + rng.normal(0, rng.uniform(0.001, 0.1), n) for _ in range(5)]
    some = chooser([base, *others], [0.1, *rng.random(5)], seed=seed)
    choice = some.within(keep, confidence)
    if choice.index == 0:
        return
    assert choice.confirmation is not None
    assert choice.confirmation.certainty is not None
    low = crossed_t(some.accuracy[choice.index][:, None], base[:, None], keep, 2 * confidence - 1)[1]
    assert low >= -1e-12  # on all users, too
    assert some.score[choice.index] > some.score[0]
    assert choice.confirmation.change.estimate >= keep - 1 - 1e-12  # on held-out users


@pytest.mark.slow
@pytest.mark.parametrize(
    ("true", "models"),
    [([0.975], 1), ([0.979], 1), ([0.975] * 24, 4), (list(np.repeat(np.linspace(1.005, 0.92, 6), 4)), 4)],
    ids=["one outside", "one hardly outside", "24 of 4 models outside", "a line of 4 models"],
)
def test_the_promise_holds_in_95_percent_of_draws(true: list[float], models: int) -> None:
    """Points of one model share most of their luck.  The draws are the same always; of 150, 5% are 7.5."""
    broken = 0
    for draw in range(150):
        rng = np.random.default_rng([draw, 7])
        base = users(800, draw)
        luck = rng.normal(0, 0.12, (models, 800)) * (base > 0)
        points = [
            base * share + np.sqrt(0.9) * luck[index % models] + np.sqrt(0.1) * rng.normal(0, 0.12, 800) * (base > 0)
            for index, share in enumerate(true)
        ]
        index = chooser([base, *points], [0.0, *np.linspace(0.5, 1, len(true))], seed=draw).within(0.98).index
        broken += index > 0 and true[index - 1] < 0.98
    assert broken <= 7


# ---------------------------------------------------------------------- without a promise


def test_the_knee_by_hand() -> None:
    accuracies = [np.full(4, value) for value in (1.0, 0.98, 0.9, 0.6)]
    assert chooser(accuracies, [0.0, 0.5, 0.6, 0.7]).knee().index == 1
    assert chooser(accuracies, [0.0, 0.01, 0.02, 0.7]).knee().index == 0  # nowhere above the line between its ends
    assert chooser(accuracies[:2], [0.0, 0.5]).knee().index == 0


def test_of_several_goals_the_least_improved_counts() -> None:
    goals = parse_goals(["aplt", "arp"])  # the one high, the other low
    values = [(0.2, 50.0), (0.6, 45.0), (0.4, 30.0), (0.6, float("nan"))]
    points = [made_point(np.ones(3), *value) for value in values]
    score = Chooser.of(points, goals, user_folds(3, 0), 0).score
    assert score.tolist() == pytest.approx([0.0, 0.25, 0.5, -np.inf])
