"""The frontier and the choice: by hand, by law, against a slow twin, and how often a promise holds."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_1samp

from dpaa.debiasing._choice import CERTAINTIES, DIVISIONS, FOLDS, Chooser, divide, most_accurate, pareto, without_each
from dpaa.debiasing._guarantee import lower_bound, p_value, users_needed
from dpaa.debiasing._points import parse_goals
from tests.debiasing.made import chooser, made_point

NUMBERS = st.lists(
    st.tuples(st.integers(0, 5), st.one_of(st.integers(0, 5), st.just(-np.inf))), min_size=1, max_size=12
)


def users(n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng([n, seed])
    return np.where(rng.random(n) < 0.5, rng.random(n), 0.0)


@given(NUMBERS)
def test_the_frontier_is_what_no_other_point_beats(points: list[tuple[float, float]]) -> None:
    line = pareto(*np.array(points, dtype=np.float64).T)
    slow = {
        one for one in points if not any(other != one and other[0] >= one[0] and other[1] >= one[1] for other in points)
    }
    assert {points[index] for index in line} == slow
    assert len(line) == len(slow)  # of equals one
    assert [points[index] for index in line] == sorted(slow, key=lambda one: -one[0])


# ---------------------------------------------------------------------- the guarantee


def p_of_t(differences: Any) -> float:
    return float(ttest_1samp(differences, 0.0, alternative="greater").pvalue)


def test_it_is_students_t_with_a_user_who_loses_half() -> None:
    rng = np.random.default_rng(0)
    other = rng.random(300) * (rng.random(300) < 0.5)
    one = other * 0.97 + rng.normal(0.0, 0.1, 300)
    for share in (0.7, 0.9, 1.0):
        padded = [*(one - share * other), -0.5 * share * other[other > 0].mean()]
        assert p_value(one, other, share) == pytest.approx(p_of_t(padded))
    bound = lower_bound(one, other, 0.95)
    assert p_value(one, other, bound - 1e-6) <= 0.05 < p_value(one, other, bound + 1e-6)
    assert p_value(other, other, 0.9) < 0.01  # the same lists
    assert p_value(np.ones(1), np.ones(1), 0.5) == p_value(np.ones(9), np.zeros(9), 0.5) == 1.0


def test_it_holds_its_level_where_plain_t_does_not() -> None:
    """A user in twelve loses half, the others gain a little: the promise is broken by a hair, few users tell."""
    false = {"ours": 0, "t": 0}
    for draw in range(400):
        rng = np.random.default_rng([draw, 5])
        loses = rng.random(40) < 1 / 12
        other = 0.5 + rng.normal(0.0, 0.01, 40)
        one = np.where(loses, 0.04, other + 0.041 + rng.normal(0.0, 0.01, 40))
        false["ours"] += p_value(one, other, 1.0) <= 0.05
        false["t"] += p_of_t(one - other) <= 0.05
    assert false["ours"] <= 28 < 2 * false["ours"] < false["t"]  # 5% are 20, give or take two standard errors


def test_how_many_users_would_be_needed() -> None:
    rng = np.random.default_rng(1)
    other = rng.random(4000)
    one = other + rng.normal(0.0, 0.2, 4000)
    one -= one.mean() - 0.99 * other.mean()
    n = round(users_needed(one, other, 0.98, 0.95))
    hits = sum(p_value(one[rows], other[rows], 0.98) <= 0.05 for rows in rng.integers(0, 4000, (300, n)))
    assert 0.74 <= hits / 300 <= 0.86
    assert users_needed(0.9 * other, other, 0.98, 0.95) == np.inf


# ---------------------------------------------------------------------- within a promise


def test_a_point_that_everybody_loses_little_by_is_chosen() -> None:
    base = users(3000)
    noise = 0.02 * np.random.default_rng(0).normal(size=3000) * base
    points = [base, 0.985 * base + noise, 0.97 * base, 0.99 * base + noise]
    choice = chooser(points, [0.1, 0.2, 0.3, 0.2]).within(0.98)
    assert choice.index == 3  # of equals for the goal the safer one
    assert choice.why == "the largest improvement that 3,000 held-out users (25 folds) confirm at 95%"
    assert choice.kept == pytest.approx([0.989], abs=2e-3)
    assert choice.picks == (3,) * FOLDS * DIVISIONS


def test_the_promise_must_hold_under_every_estimate() -> None:
    base = users(3000)
    either = [np.stack([base, base]), np.stack([base, 0.9 * base]), np.stack([0.99 * base, 1.1 * base])]
    assert chooser(either, [0.1, 0.3, 0.2]).within(0.98).index == 2
    assert chooser([one[:1] for one in either], [0.1, 0.3, 0.2]).within(0.98).index == 1
    assert chooser(either, [0.1, 0.3, 0.2]).relative() == pytest.approx([1.0, 0.9, 0.99], abs=1e-6)


def test_a_bold_point_does_not_cost_a_mild_one_its_confirmation() -> None:
    base, rng = users(900), np.random.default_rng(0)
    noisy = base * 1.02 + rng.normal(0.0, 0.3, 900)
    for bold in ([], [noisy], [noisy, 0.5 * base]):
        points = [base, 0.995 * base, *bold]
        assert chooser(points, [0.1, 0.2, 0.8, 0.9][: len(points)]).within(0.98).index == 1


def test_what_a_few_users_cannot_confirm_is_a_guess_with_its_risk() -> None:
    rng = np.random.default_rng(3)
    base = users(60)
    other = base + rng.normal(0.0, 0.3, 60)
    other += 0.01 - (other - base).mean()
    choice = chooser([base, other], [0.1, 0.2]).within(0.99)
    assert choice.index == 0
    assert choice.why == "60 held-out users confirm no point that improves the goal at 95%"
    assert choice.guess.index == 1
    assert 0.05 < choice.guess.risk <= 1.0
    assert choice.guess.users > 60
    assert chooser([base, 0.5 * base], [0.1, 0.2]).within(0.99).guess is None


def test_users_of_a_fold_change_nothing_about_the_choice_made_without_them() -> None:
    rng = np.random.default_rng(0)
    base = users(90)
    others = np.array([base + rng.normal(0.02, 0.05, 90) for _ in range(4)])
    scores = [0.1, 0.2, 0.3, 0.4, 0.5]
    before = chooser([base, *others], scores)
    others[:, before.folds[2]] = rng.random((4, len(before.folds[2])))
    after = chooser([base, *others], scores)
    safety = [one._safety(0.95) for one in (before, after)]
    picked = [[one._boldest(part, z) for z in CERTAINTIES] for one, part in zip((before, after), safety, strict=True)]
    assert [one[2] for one in picked[0]] == [one[2] for one in picked[1]]
    assert picked[0] != picked[1]
    assert before._knee(2) == after._knee(2)


def test_users_are_divided_by_the_seed_alone() -> None:
    folds = divide(24, 0)
    for first in range(0, len(folds), FOLDS):
        assert sorted(np.concatenate(folds[first : first + FOLDS]).tolist()) == list(range(24))
        assert sorted(map(len, folds[first : first + FOLDS])) == [4, 5, 5, 5, 5]
    assert len({tuple(fold) for fold in folds}) == len(folds) == FOLDS * DIVISIONS
    assert folds[0].tolist() == divide(24, 0)[0].tolist() != divide(24, 1)[0].tolist()
    *parts, everybody = without_each(folds)
    assert everybody.tolist() == list(range(24))
    assert all(sorted([*part, *fold]) == list(range(24)) for part, fold in zip(parts, folds, strict=True))
    assert [rows.tolist() for rows in without_each(divide(1, 0))] == [[0]] * (DIVISIONS + 1)


@given(st.integers(0, 10_000), st.sampled_from([0.5, 0.8, 0.95]), st.sampled_from([0.9, 0.98, 1.0]))
def test_what_is_chosen_was_confirmed_and_is_within_the_promise(seed: int, confidence: float, keep: float) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 400))
    base = users(n, seed)
    others = [np.clip(base * rng.uniform(0.9, 1.1) + rng.normal(0, rng.uniform(0.001, 0.1), n), 0, 1) for _ in range(5)]
    some = chooser([base, *others], [0.1, *rng.random(5)], seed=seed)
    choice = some.within(keep, confidence)
    if choice.index == 0:
        return
    assert some.scores[-1, choice.index] > some.scores[-1, 0]
    assert min(choice.kept) >= keep - 1e-9
    picked = np.concatenate([some.accuracy[one][0, fold] for one, fold in zip(choice.picks, some.folds, strict=True)])
    for one in (picked, some.accuracy[choice.index][0]):
        assert one.mean() >= keep * some.accuracy[0][0].mean() - 1e-6


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


def test_the_baseline_loses_least_under_any_estimate() -> None:
    accuracies = [([0.2], [0.1]), ([0.19], [0.15]), ([0.1], [0.2])]
    points = [made_point(np.repeat(one, 4, axis=1)) for one in accuracies]
    assert most_accurate(points) == 1
    assert most_accurate([made_point(one[0] * 4) for one in accuracies]) == 0


# ---------------------------------------------------------------------- without a promise


def test_the_knee_by_hand() -> None:
    accuracies = [np.full(4, value) for value in (1.0, 0.98, 0.9, 0.6)]
    assert chooser(accuracies, [0.0, 0.5, 0.6, 0.7]).knee().index == 1
    assert chooser(accuracies, [0.0, 0.01, 0.02, 0.7]).knee().index == 0  # nowhere above the line between its ends
    assert chooser(accuracies[:2], [0.0, 0.5]).knee().index == 0
    more = [np.full(4, value) for value in (0.75, 1.0, 0.7, 0.5)]  # what only gains accuracy is no trade-off
    assert [chooser(more[:n], [0.0, 0.0, 0.3, 0.5][:n]).knee().index for n in (2, 4)] == [0, 2]


def test_of_several_goals_the_least_improved_counts() -> None:
    goals = parse_goals(["aplt", "arp"])  # the one high, the other low
    values = [(0.2, 50.0), (0.6, 45.0), (0.4, 30.0), (0.6, float("nan"))]
    points = [made_point(np.ones(3), *value) for value in values]
    scores = Chooser.of(points, goals, divide(9, 0), 0).scores
    assert len(scores) == DIVISIONS * FOLDS + 1
    for score in scores:
        assert score.tolist() == pytest.approx([0.0, 0.25, 0.5, -np.inf])
