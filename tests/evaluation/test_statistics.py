"""Intervals and tests: against loops, against hand-worked cases, and do they keep their level?"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpaa.errors import InputError
from dpaa.evaluation import statistics
from dpaa.evaluation.statistics import (
    Contrast,
    Outcome,
    compare_means,
    holm,
    no_worse,
    resampled_means,
    sign_flip_p,
    student_quantile,
    student_tail,
)

PAIR = [Contrast((0,), (1,))]


def users_world(
    rng: np.random.Generator, n: int, runs: tuple[int, int] = (1, 1), luck: float = 0.0, factor: float = 1.0
) -> np.ndarray:
    """Recall of n users for runs of two methods, (n, runs): 1 to 5 relevant items, hits by a taste both share.

    Many users miss everything, differences are multiples of fractions with many ties and zeros, a tenth has no value.
    Without luck the expected recall is 1/7 for the other method and `factor` times as much for the one.
    """
    relevant, taste, nothing = rng.integers(1, 6, n), rng.beta(1, 6, n), rng.random(n) < 0.1
    columns = []
    for chance, number in zip((factor * taste, taste), runs, strict=True):
        for _ in range(number):
            lucky = np.clip(chance + luck * rng.standard_normal(), 0, 1)
            columns.append(np.where(nothing, np.nan, rng.binomial(relevant, lucky) / relevant))
    return np.stack(columns, axis=1)


def outcomes_of_worlds(
    worlds: int, n: int, runs: tuple[int, int] = (1, 1), luck: float = 0.0, factor: float = 1.0, scale: float = 1.0
) -> list[Outcome]:
    """Many independent comparisons, 100 of them sharing resamples."""
    rng, found = np.random.default_rng(1), []
    width = sum(runs)
    contrasts = [
        Contrast(tuple(range(at, at + runs[0])), tuple(range(at + runs[0], at + width)), scale)
        for at in range(0, 100 * width, width)
    ]
    for batch in range(worlds // 100):
        values = np.concatenate([users_world(rng, n, runs, luck, factor) for _ in range(100)], axis=1)
        found += compare_means(values, contrasts, resamples=999, seed=batch)
    return found


def test_level_and_coverage_on_2000_null_comparisons() -> None:
    """The level of a test with 999 series is 49/1000; of 2,000 comparisons the share varies by ± 0.005 around it."""
    found = outcomes_of_worlds(2000, 300)
    assert 0.04 <= np.mean([one.p < 0.05 for one in found]) <= 0.06
    assert 0.93 <= np.mean([one.low <= 0 <= one.high for one in found]) <= 0.97
    assert 0.01 <= np.mean([one.p_at_most_zero < 0.025 for one in found]) <= 0.04


def test_coverage_where_there_is_a_difference_and_power_to_see_it() -> None:
    found = outcomes_of_worlds(1000, 200, factor=0.65)
    assert 0.93 <= np.mean([one.low <= -0.05 <= one.high for one in found]) <= 0.97
    assert np.mean([one.p < 0.05 for one in found]) > 0.4


def test_no_harm_is_claimed_wrongly_once_in_forty() -> None:
    """A loss of exactly the margin: the claim "less than that" is false, and made at its level of 2.5 %."""
    found = outcomes_of_worlds(1000, 200, factor=0.8, scale=0.8)
    assert 0.012 <= np.mean([no_worse(one) == "shown" for one in found]) <= 0.04
    assert 0.012 <= np.mean([one.p_at_most_zero < 0.025 for one in found]) <= 0.04


@pytest.mark.parametrize(("runs", "luck"), [((3, 3), 0.0), ((3, 3), 0.02), ((5, 5), 0.05)])
def test_level_with_several_seeds(runs: tuple[int, int], luck: float) -> None:
    """Seeds that do nothing, a little, and much: never liberal by much, and not useless either."""
    found = outcomes_of_worlds(600, 150, runs, luck)
    assert 0.01 <= np.mean([one.p < 0.05 for one in found]) <= 0.08
    assert 0.91 <= np.mean([one.low <= 0 <= one.high for one in found]) <= 0.99


def test_ignoring_seeds_would_be_wrong() -> None:
    """The same worlds with each side's runs averaged beforehand: training luck passes for a difference."""
    rng, contrasts = np.random.default_rng(20), PAIR
    alarms = []
    for world in range(200):
        values = users_world(rng, 150, (5, 5), 0.05)
        averaged = np.stack([values[:, :5].mean(axis=1), values[:, 5:].mean(axis=1)], axis=1)
        alarms.append(compare_means(averaged, contrasts, resamples=199, seed=world)[0].p < 0.05)
    assert np.mean(alarms) > 0.3


def test_resampled_means_are_those_of_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    values = rng.random((17, 3))
    values[4, 1] = values[9, 1] = values[0, 2] = np.nan
    found = resampled_means(values, 50, seed=9)
    draws = np.random.default_rng([9, 0])
    for row in found:
        taken = values[draws.integers(0, 17, 17)]
        np.testing.assert_allclose(row, np.nanmean(taken, axis=0), rtol=1e-12)
    monkeypatch.setattr(statistics, "CHUNK", 40)
    np.testing.assert_allclose(resampled_means(values, 50, seed=9), found, rtol=1e-12)


def slow_p(differences: list[float]) -> float:
    """Every series of signs, one by one."""
    found = abs(sum(differences))
    sums = [
        sum(s * d for s, d in zip(signs, differences, strict=True))
        for signs in product((-1, 1), repeat=len(differences))
    ]
    return sum(abs(one) >= found - 1e-9 for one in sums) / len(sums)


@given(st.lists(st.sampled_from([-0.5, -1 / 3, 0.0, 0.1, 0.2, 1 / 3, 1.0]), min_size=1, max_size=9))
def test_few_users_are_counted_through(differences: list[float]) -> None:
    column = np.array(differences)[:, None]
    assert sign_flip_p(column, column.sum(axis=0), 2000, seed=0)[0] == pytest.approx(slow_p(differences))


def test_many_users_are_near_the_exact_share() -> None:
    differences = np.random.default_rng(5).choice([-0.5, 0.2, 0.25, 1 / 3], 14)
    column = differences[:, None]
    p = sign_flip_p(column, column.sum(axis=0), 20_000 - 1, seed=1)  # 2^14 = 16,384 series: counted through
    drawn = sign_flip_p(column, column.sum(axis=0), 16_000, seed=1)  # not quite enough: drawn
    assert p[0] == pytest.approx(slow_p(differences.tolist()))
    assert drawn[0] == pytest.approx(p[0], abs=0.015)
    assert drawn[0] != p[0]


def test_sign_flip_by_hand() -> None:
    """1, 1, 1: of eight series two have |sum| ≥ 3; 1, 1, −1: all have |sum| ≥ 1; 0 counts nowhere."""
    table = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [1.0, -1.0, 0.0], [0.0, 0.0, 0.0]])
    assert sign_flip_p(table, table.sum(axis=0), 100, seed=0).tolist() == [0.25, 1.0, 1.0]


def test_no_difference_at_all() -> None:
    values = np.random.default_rng(0).random((50, 1)).repeat(2, axis=1)
    found = compare_means(values, PAIR, resamples=200)[0]
    assert (found.estimate, found.low, found.high, found.p) == (0.0, 0.0, 0.0, 1.0)


def test_one_user_and_none() -> None:
    found = compare_means(np.array([[1.0, 0.0]]), PAIR, resamples=200)[0]
    assert (found.estimate, found.p, found.users, found.p_at_most_zero) == (1.0, 1.0, 1, 1.0)
    assert np.isnan(found.low)
    assert np.isnan(found.high)
    nobody = compare_means(np.full((4, 2), np.nan), PAIR, resamples=200)[0]
    assert nobody.users == 0
    assert np.isnan([nobody.estimate, nobody.p, nobody.low]).all()


def test_users_without_a_value_change_nothing_but_the_draws() -> None:
    rng = np.random.default_rng(1)
    values = users_world(rng, 400, factor=0.7)
    kept = values[~np.isnan(values).any(axis=1)]
    one, other = compare_means(values, PAIR, seed=4)[0], compare_means(kept, PAIR, seed=4)[0]
    assert one.estimate == pytest.approx(other.estimate)
    assert one.users == other.users == len(kept)
    assert one.low == pytest.approx(other.low, abs=0.1 * (other.high - other.low))


def test_values_on_one_side_only() -> None:
    """The estimate is the difference of the two means as they are printed; the test sees the pairs alone."""
    values = np.array([[1.0, 0.0], [0.0, np.nan], [1.0, 1.0], [np.nan, 0.0]])
    found = compare_means(values, PAIR, resamples=200)[0]
    assert found.estimate == pytest.approx(2 / 3 - 1 / 3)
    assert found.users == 2


def test_the_seed_decides() -> None:
    values = users_world(np.random.default_rng(2), 300, (2, 3), 0.02)
    contrast = [Contrast((0, 1), (2, 3, 4))]
    assert compare_means(values, contrast, seed=7) == compare_means(values, contrast, seed=7)
    assert compare_means(values, contrast, seed=7) != compare_means(values, contrast, seed=8)


def test_the_interval_is_the_bootstrap_of_scipy() -> None:
    values = users_world(np.random.default_rng(6), 500, factor=0.7)
    values = values[~np.isnan(values).any(axis=1)]
    found = compare_means(values, PAIR, resamples=9_999, seed=0)[0]
    theirs = stats.bootstrap((values[:, 0] - values[:, 1],), np.mean, method="percentile", rng=np.random.default_rng(0))
    np.testing.assert_allclose([found.low, found.high], theirs.confidence_interval, atol=0.002)


def test_several_seeds_widen_the_interval_as_their_variance_says() -> None:
    """Runs that differ by a constant per run and not per user: the error is √(users + seeds), t between 2 and n − 1."""
    user = np.random.default_rng(0).normal(0, 1, 400)
    shift = np.array([0.0, 0.1, 0.2])
    values = np.column_stack([*(user[:, None] * 0.1 + shift).T, np.zeros(400)])
    found = compare_means(values, [Contrast((0, 1, 2), (3,))], resamples=5_000)[0]
    of_users, of_seeds = (0.1 * user).var(ddof=1) / 400, shift.var(ddof=1) / 3
    degrees = (of_users + of_seeds) ** 2 / (of_users**2 / 399 + of_seeds**2 / 2)
    expected = stats.t.ppf(0.975, degrees) * np.sqrt(of_users + of_seeds)
    assert (found.high - found.low) / 2 == pytest.approx(expected, rel=0.15)


@pytest.mark.parametrize("degrees", [1.0, 1.7, 2.0, 5.0, 29.0, 999.0, 5000.0, np.inf])
def test_student(degrees: float) -> None:
    for probability in (0.9, 0.975, 0.995):
        assert student_quantile(probability, degrees) == pytest.approx(stats.t.ppf(probability, degrees), rel=2e-3)
    for value in (0.0, 0.5, 2.0, 4.0):
        assert student_tail(value, degrees) == pytest.approx(stats.t.sf(value, degrees), rel=0.02)


def test_holm_by_hand() -> None:
    """Smallest × 4, next × 3, next × 2, largest × 1, none below the one before."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []
    with_none = holm([0.02, float("nan"), 0.03])
    assert np.isnan(with_none[1])
    assert [with_none[0], with_none[2]] == pytest.approx([0.04, 0.04])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_holm_laws(p: list[float], random: object) -> None:
    corrected = holm(p)
    assert all(a <= b <= 1 for a, b in zip(p, corrected, strict=True))
    assert all(b <= min(1.0, len(p) * a) + 1e-12 for a, b in zip(p, corrected, strict=True))  # never above Bonferroni
    order = list(range(len(p)))
    random.shuffle(order)  # type: ignore[attr-defined]
    assert holm([p[i] for i in order]) == [corrected[i] for i in order]


def test_non_inferiority_in_three_words() -> None:
    def found(low: float, high: float) -> str:
        return no_worse(Outcome(0.0, low, high, 1.0, 0.5, 9))

    assert [found(0.1, 0.2), found(-0.2, -0.1), found(-0.1, 0.1), found(0.0, 0.1)] == ["shown", "harm", "open", "open"]
    assert found(float("nan"), float("nan")) == "open"


def test_wrong_choices() -> None:
    with pytest.raises(InputError, match="resamples must be at least 100, got 5"):
        compare_means(np.zeros((3, 2)), PAIR, resamples=5)
    with pytest.raises(InputError, match="confidence must be from"):
        compare_means(np.zeros((3, 2)), PAIR, confidence=95)
    assert compare_means(np.zeros((3, 2)), []) == []
