"""The frontier and the choice: by hand, by law, against a slow twin, and how often a promise holds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaa.comparison.statistics import crossed_t
from dpaa.debiasing._points import parse_goals, user_folds
from dpaa.debiasing.choice import CERTAINTIES, Change, Chooser, _Rule, pareto, parse_target, relative_change
from dpaa.errors import InputError
from tests.debiasing.made import chooser, made_point

NUMBERS = st.lists(
    st.tuples(st.integers(0, 5), st.one_of(st.integers(0, 5), st.just(-np.inf))), min_size=1, max_size=12
)


# ---------------------------------------------------------------------- the frontier


def slow_pareto(points: list[tuple[float, float]]) -> set[tuple[float, float]]:
    """Every pair of numbers that no other is at least as good as in both."""
    return {
        one for one in points if not any(other != one and other[0] >= one[0] and other[1] >= one[1] for other in points)
    }


@given(NUMBERS)
def test_the_frontier_is_what_no_other_point_beats(points: list[tuple[float, float]]) -> None:
    line = pareto(*np.array(points, dtype=np.float64).T)
    assert {points[place] for place in line} == slow_pareto(points)
    assert len(line) == len(slow_pareto(points))  # of equals one
    accuracy = [points[place][0] for place in line]
    score = [points[place][1] for place in line]
    assert accuracy == sorted(accuracy, reverse=True)
    assert score == sorted(score)


# ---------------------------------------------------------------------- changes


def test_a_relative_change_by_hand() -> None:
    # Means 2 and 4: −50 %.  one − ½ other is ±1: standard deviation √(4/3), of the mean half of it, in shares of 4.
    one, other = np.array([1.0, 3.0, 1.0, 3.0]), np.full(4, 4.0)
    found = relative_change(one, other)
    error = np.sqrt(4 / 3) / 2 / 4
    assert found.estimate == -0.5
    assert (found.low, found.high) == pytest.approx((-0.5 - 3.1824463 * error, -0.5 + 3.1824463 * error))


def test_users_without_a_value_and_a_baseline_of_nothing() -> None:
    nan = float("nan")
    assert relative_change(np.array([2.0, 2.0, nan, 1]), np.array([1.0, 1.0, 5, nan])).estimate == 1.0
    for one, other in (([1.0], [1.0]), ([1.0, 2.0], [0.0, 0.0]), ([nan, nan], [1.0, 1.0])):
        assert np.isnan(relative_change(np.array(one), np.array(other)).estimate)
    assert Change(nan, nan, nan).in_words() == "not known"


def test_the_interval_of_a_ratio_holds_it_in_95_percent_of_draws() -> None:
    held = 0
    for draw in range(400):
        rng = np.random.default_rng(draw)
        other = rng.gamma(1.0, 1.0, 200)
        one = 1.6 * rng.gamma(1.0, 1.0, 200)
        found = relative_change(one, other)
        held += found.low <= 0.6 <= found.high
    assert 0.92 <= held / 400 <= 0.98  # .89 where the level is taken as known


# ---------------------------------------------------------------------- within a promise


def users(n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng([n, seed])
    return np.where(rng.random(n) < 0.5, rng.random(n), 0.0)


def test_a_point_that_everybody_loses_little_by_is_chosen() -> None:
    base = users(200)
    place, found = chooser([base, 0.985 * base, 0.97 * base, 0.99 * base], [0.1, 0.2, 0.3, 0.2]).within(0.98)
    assert place == 3  # of equals the most accurate
    assert found.change.estimate == pytest.approx(-0.01)
    assert (found.users, found.folds, found.refused) == (200, 5, None)


def test_what_a_few_users_cannot_confirm_is_a_guess() -> None:
    rng = np.random.default_rng(3)
    base = users(60)
    other = base + rng.normal(0.0, 0.3, 60)
    other += 0.05 - (other - base).mean()
    some = chooser([base, other], [0.1, 0.2])
    place, found = some.within(0.99)
    assert (place, found.certainty) == (0, None)
    assert found.refused is not None
    assert some.less_sure(0.99, 0) == ((0.5, 1),) or some.less_sure(0.99, 0) == ((0.8, 1),)
    assert replace(some, confidence=0.5).less_sure(0.99, 1) == ()


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_a_handful_of_users_confirms_nothing_by_chance(n: int) -> None:
    place, found = chooser([np.full(n, 0.5), np.linspace(0.1, 0.9, n)], [0.1, 0.2]).within(0.9)
    assert place == 0
    assert found.refused is not None


def test_users_never_choose_for_themselves() -> None:
    """What the users of a fold find changes nothing about what is chosen for them."""
    rng = np.random.default_rng(0)
    base = users(100)
    others = [base + rng.normal(0.02, 0.05, 100) for _ in range(4)]
    before = chooser([base, *others], [0.1, 0.2, 0.3, 0.4, 0.5])
    fold = before.folds[2]
    changed = [other.copy() for other in others]
    for other in changed:
        other[fold] = rng.random(len(fold))
    after = chooser([base, *changed], [0.1, 0.2, 0.3, 0.4, 0.5])
    chosen = [seen_choice(one, 2, 0.95) for one in (before, after)]
    assert chosen[0] == chosen[1]


def seen_choice(some: Chooser, fold: int, keep: float) -> list[int]:
    """What is chosen for the users of a fold by all rules."""
    rule = _Rule.on(some, keep, some.n_users - len(some.folds[fold]), fold)
    return [rule.choose(one) for one in CERTAINTIES]


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
    some = chooser([base, *others], [0.1, *rng.random(5)], confidence=confidence, seed=seed)
    place, found = some.within(keep)
    if place == 0:
        return
    assert found.certainty is not None
    values = some.points[place].accuracy["logged"]
    low = crossed_t(values[:, None], base[:, None], keep, 2 * confidence - 1)[1]
    assert low >= -1e-12  # on all users, too
    assert some.scores()[place] > some.scores()[0]
    assert found.change.estimate >= keep - 1 - 1e-12  # on the users who had no part in it


@pytest.mark.slow
@pytest.mark.parametrize(
    ("true", "models"),
    [([0.975], 1), ([0.979], 1), ([0.975] * 24, 4), (list(np.repeat(np.linspace(1.005, 0.92, 6), 4)), 4)],
    ids=["one outside", "one hardly outside", "24 of 4 models outside", "a line of 4 models"],
)
def test_the_promise_holds_in_95_percent_of_draws(true: list[float], models: int) -> None:
    """Points of one model share most of their luck.  The draws are the same always; of 150, 5 % are 7.5."""
    broken = 0
    for draw in range(150):
        rng = np.random.default_rng([draw, 7])
        base = users(800, draw)
        luck = rng.normal(0, 0.12, (models, 800)) * (base > 0)
        points = [
            base * share + np.sqrt(0.9) * luck[place % models] + np.sqrt(0.1) * rng.normal(0, 0.12, 800) * (base > 0)
            for place, share in enumerate(true)
        ]
        place, _ = chooser([base, *points], [0.0, *np.linspace(0.5, 1, len(true))], seed=draw).within(0.98)
        broken += place > 0 and true[place - 1] < 0.98
    assert broken <= 7


# ---------------------------------------------------------------------- targets, and without a wish


def test_the_knee_by_hand() -> None:
    accuracies = [np.full(4, value) for value in (1.0, 0.98, 0.9, 0.6)]
    assert chooser(accuracies, [0.0, 0.5, 0.6, 0.7]).knee() == 1
    assert chooser(accuracies, [0.0, 0.01, 0.02, 0.7]).knee() == 0  # nowhere above the line between its ends
    assert chooser(accuracies[:2], [0.0, 0.5]).knee() == 0


def test_the_knee_never_does_less_for_the_goal_than_the_baseline() -> None:
    accuracies = [np.full(4, value) for value in (0.5, 1.0, 0.9, 0.8)]
    assert chooser(accuracies, [0.6, 0.1, 0.3, 0.5]).knee() == 0
    assert chooser(accuracies, [0.6, 0.1, 0.3, 0.7]).knee() == 3  # beats the baseline in both
    assert chooser([np.full(4, 1.0), np.full(4, 0.4), np.full(4, 0.3)], [0.1, 0.5, 0.9]).knee() == 0


def test_a_goal_without_a_value_leaves_everything_as_it_is() -> None:
    base = users(40)
    nothing = chooser([base, 0.999 * base, 0.998 * base], [float("nan")] * 3)
    assert nothing.knee() == 0
    assert nothing.within(0.9)[0] == 0
    assert len(nothing.frontier()) == 1


def test_of_several_goals_the_least_improved_counts() -> None:
    goals = ("aplt", "arp")  # the one high, the other low
    values = [(0.2, 50.0), (0.6, 45.0), (0.4, 30.0), (0.6, float("nan"))]
    points = [made_point(np.ones(3), *value, goals=goals) for value in values]
    scores = Chooser(points, 0, "logged", ()).scores()
    assert scores.tolist() == pytest.approx([0.0, 0.25, 0.5, -np.inf])
    without = [made_point(np.ones(3), 0.2 + place, float("nan"), goals=goals) for place in range(2)]
    assert Chooser(without, 0, "logged", ()).scores().tolist() == [-np.inf, -np.inf]


def test_targets() -> None:
    some = chooser([np.full(3, value) for value in (0.5, 0.4, 0.3, 0.45)], [0.1, 0.2, 0.3, 0.2])
    values = (0.1, 0.6, 0.9, float("nan"))
    points = [replace(one, metrics={"coverage@5": value}) for one, value in zip(some.points, values, strict=True)]
    some = replace(some, points=points)
    target = parse_target("coverage >= 60%", parse_goals(["arp"]), 5)
    assert some.reaching([target]) == 1  # what has no value meets nothing
    assert some.reaching([target, parse_target("coverage@5>0.8", (), 5)]) == 2
    assert some.reaching([parse_target("coverage>0.9", (), 5)]) is None
    with pytest.raises(InputError, match="not NAME OP NUMBER"):
        parse_target("coverage", (), 5)
    with pytest.raises(InputError, match="no metric 'entropy' to aim at; choose one of ndcg"):
        parse_target("entropy>1", (), 5)
    assert parse_target("entropy>1", parse_goals(["entropy"]), 5).name == "entropy@5"


def test_only_a_guess_goes_on_where_a_rule_is_not_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A promise is kept by ending there: who tries on until someone says yes is lucky in the end."""
    base = users(200)
    for confidence, expected in ((0.5, 1), (0.51, 0), (0.95, 0)):
        answers = iter([False, *[True] * 30])
        monkeypatch.setattr(Chooser, "_confirm", lambda *_, answers=answers: next(answers))
        place, found = chooser([base, 0.99 * base], [0.1, 0.2], confidence=confidence).within(0.98)
        assert place == expected
        assert (found.refused is None) == (place == 1)
