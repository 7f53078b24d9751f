"""Intervals and tests: against loops, against hand-worked cases, and do they keep their level?"""

from itertools import product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import special, stats

from dpaa.comparison.statistics import Contrast, Outcome, compare_means, crossed_t, holm, no_worse, sign_flips, student


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
    """Many independent comparisons, 100 of them sharing coins."""
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


def agree(found: Outcome, confidence: float = 0.95) -> bool:
    """Whether interval, two-sided and one-sided p say the same."""
    level = round(1 - confidence, 12)
    return (
        (found.low > 0 or found.high < 0) == (found.p < level)
        and (found.low > 0) == (found.p_at_most_zero < level / 2)
        and not found.low > found.estimate
        and not found.high < found.estimate
    )


def test_level_and_coverage_on_2000_null_comparisons() -> None:
    """The level of a test with 999 series is 49/1000; of 2,000 comparisons the share varies by ± 0.005 around it."""
    found = outcomes_of_worlds(2000, 300)
    assert 0.04 <= np.mean([one.p < 0.05 for one in found]) <= 0.06
    assert 0.93 <= np.mean([one.low <= 0 <= one.high for one in found]) <= 0.97
    assert 0.01 <= np.mean([one.p_at_most_zero < 0.025 for one in found]) <= 0.04
    assert all(agree(one) for one in found)


def test_coverage_where_there_is_a_difference_and_power_to_see_it() -> None:
    found = outcomes_of_worlds(1000, 200, factor=0.65)
    assert 0.93 <= np.mean([one.low <= -0.05 <= one.high for one in found]) <= 0.97
    assert np.mean([one.p < 0.05 for one in found]) > 0.4


def test_no_harm_is_claimed_wrongly_once_in_forty() -> None:
    """A loss of exactly the margin: the claim "less than that" is false, and made at its level of 2.5 %."""
    found = outcomes_of_worlds(1000, 200, factor=0.8, scale=0.8)
    assert 0.012 <= np.mean([no_worse(one) == "shown" for one in found]) <= 0.04
    assert 0.012 <= np.mean([one.p_at_most_zero < 0.025 for one in found]) <= 0.04


# Several runs: Student's t ###########################################################################################


def test_the_t_of_users_crossed_with_runs_by_hand() -> None:
    """Users 0, 3 and 6 with 2 + 2 runs; every number below is worked out with a pencil."""
    one = np.array([[1.0, 3.0], [4.0, 6.0], [8.0, 8.0]])  # run means 13/3, 17/3; users' means 2, 5, 8
    other = np.array([[0.0, 1.0], [1.0, 2.0], [5.0, 3.0]])  # run means 2, 2; users' means 1/2, 3/2, 4
    estimate, low, high, p = crossed_t(one, other)
    of_users = np.var([1.5, 3.5, 4.0], ddof=1) / 3  # A = 7/12
    of_runs = (2 * (2 / 3) ** 2 + 0) / 2 * (1 / 2 + 1 / 2)  # B = 4/9
    left_one, left_other = 2 * (1 / 9 + 1 / 9 + 4 / 9), 2 * (1 / 4 + 1 / 4 + 1)
    of_both = (left_one + left_other) / (2 * 2) / 3  # C = 13/36
    variance = of_users - of_both + of_runs
    share = of_runs / variance  # 2/3
    degrees = 1 / (share**2 / 2 + (1 - share) ** 2 / 2)
    assert estimate == pytest.approx(3)
    assert variance == pytest.approx(2 / 3)
    assert degrees == pytest.approx(18 / 5)
    runs_alone = stats.t.ppf(0.975, 2) * np.sqrt(of_runs)
    assert runs_alone > stats.t.ppf(0.975, degrees) * np.sqrt(variance)
    assert high - estimate == pytest.approx(runs_alone)
    assert estimate - low == pytest.approx(high - estimate)
    assert p == pytest.approx(2 * stats.t.sf(3 / np.sqrt(of_runs), 2))
    unsure = crossed_t(one, other + np.array([[0], [4], [-4]]))  # differences 1.5, −.5, 8: users are nearly all of it
    of_users = np.var([1.5, -0.5, 8.0], ddof=1) / 3
    variance = of_users - of_both + of_runs
    degrees = 1 / ((of_runs / variance) ** 2 / 2 + (1 - of_runs / variance) ** 2 / 2)
    assert unsure[2] - unsure[0] == pytest.approx(stats.t.ppf(0.975, degrees) * np.sqrt(variance))
    assert unsure[3] == pytest.approx(2 * stats.t.sf(3 / np.sqrt(variance), degrees))


@pytest.mark.parametrize(
    ("degrees", "least", "most"),
    [(1, 0.022, 0.0501), (2, 0.044, 0.0515), (3, 0.049, 0.056), (4, 0.0495, 0.0575), (8, 0.0495, 0.053)],
)
def test_the_level_by_quadrature(degrees: int, least: float, most: float) -> None:
    """Many users, so that their part is known; the runs' mean square is χ²/ν.  Satterthwaite's own goes up to .078."""
    draws = special.chdtri(degrees, 1 - (np.arange(4000) + 0.5) / 4000) / degrees
    freedom, satterthwaite = np.full(4000, float(degrees)), []
    for share in np.linspace(0, 1, 51):
        of_users, of_runs = np.full(4000, 1 - share), share * draws
        _, reach, _ = student(np.zeros(4000), of_users, of_runs, freedom, 10**6)
        assert least <= np.mean(2 * special.ndtr(-reach)) <= most, share
        _, reach, _ = student(np.zeros(4000), of_users, of_runs, freedom, 10**6, 0.996)
        assert np.mean(2 * special.ndtr(-reach)) <= 1.42 * 0.004, share
        found = of_runs / (of_users + of_runs)
        alone = special.stdtrit(1 / (found**2 / degrees + (1 - found) ** 2 / 10**6), 0.975)
        satterthwaite.append(np.mean(2 * special.ndtr(-alone * np.sqrt(of_users + of_runs))))
    assert degrees != 2 or max(satterthwaite) > 0.075


values_of_few = st.sampled_from([-1.0, -0.5, 0.0, 0.0, 0.25, 1 / 3, 0.5, 1.0, 2.0])


@st.composite
def problems(draw: st.DrawFn) -> tuple[np.ndarray, Contrast]:
    users, one, other = draw(st.integers(0, 15)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    cells = st.one_of(values_of_few, values_of_few, values_of_few, st.just(float("nan")))
    rows = draw(st.lists(st.lists(cells, min_size=one + other, max_size=one + other), min_size=users, max_size=users))
    scale = draw(st.sampled_from([1.0, 1.0, 0.95, 0.5]))
    values = np.array(rows).reshape(users, one + other)
    return values, Contrast(tuple(range(one)), tuple(range(one, one + other)), scale)


@given(problems(), st.sampled_from([100, 127, 999, 2000]), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_interval_and_p_never_disagree(problem: tuple[np.ndarray, Contrast], resamples: int, confidence: float) -> None:
    values, contrast = problem
    found = compare_means(values, [contrast], resamples=resamples, confidence=confidence)[0]
    assert agree(found, confidence)
    assert found.users == int((~np.isnan(values)).all(axis=1).sum())


# One run a side: sign-flip permutations ##############################################################################


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
    found = sign_flips(np.array(differences)[:, None], 2000, 0)[2]
    assert found.tolist() == pytest.approx([slow_p(differences)])


@given(st.lists(st.integers(-3, 3), min_size=6, max_size=9))
@example([0, 0, 0, 0, 0, 0])
@example([1, 1, 1, 1, 1, 1])
def test_the_interval_is_where_the_shifted_test_is_not_significant(differences: list[int]) -> None:
    """Just inside of each end p is at least .05, at the end too, and just outside it is less."""
    low, high, _ = (float(numbers[0]) for numbers in sign_flips(np.array(differences, dtype=float)[:, None], 2000, 0))
    for end, outwards in ((low, -1), (high, 1)):
        if low < high:
            assert slow_p([one - end + 1e-6 * outwards for one in differences]) >= 0.05
        assert slow_p([one - end for one in differences]) >= 0.05
        assert slow_p([one - end - 1e-6 * outwards for one in differences]) < 0.05


def test_sign_flip_by_hand() -> None:
    """1, 1, 1: of eight series two have |sum| ≥ 3; 1, 1, −1: all have |sum| ≥ 1; 0 counts nowhere."""
    table = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [1.0, -1.0, 0.0], [0.0, 0.0, 0.0]])
    assert sign_flips(table, 100, seed=0)[2].tolist() == [0.25, 1.0, 1.0]


def test_below_six_users_there_is_no_interval() -> None:
    """Series of heads or tails alone are always as far: p is at least 2/2⁵ whatever the differences, and above .05."""
    table = np.full((6, 2), 1.0)
    table[5, 0] = np.nan
    low, high, p = sign_flips(table, 2000, seed=0)
    assert p.tolist() == [2 / 32, 2 / 64]
    assert np.isnan([low[0], high[0]]).all()
    assert (low[1], high[1]) == (1.0, 1.0)


def test_the_seed_decides_where_coins_are_thrown() -> None:
    values = users_world(np.random.default_rng(2), 300, (2, 3), 0.02)
    coins, student = [Contrast((0,), (2,))], [Contrast((0, 1), (2, 3, 4))]
    assert compare_means(values, coins, seed=7) == compare_means(values, coins, seed=7)
    assert compare_means(values, coins, seed=7) != compare_means(values, coins, seed=8)
    assert compare_means(values, student, seed=7) == compare_means(values, student, seed=8, resamples=100)


# Holm, non-inferiority, choices ######################################################################################


def test_holm_by_hand() -> None:
    """Smallest × 4, next × 3, next × 2, largest × 1, none below the one before."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []
    with_none = holm([0.02, float("nan"), 0.03])
    assert np.isnan(with_none[1])
    assert [with_none[0], with_none[2]] == pytest.approx([0.04, 0.04])


def test_non_inferiority_in_three_words() -> None:
    def found(low: float, high: float) -> str:
        return no_worse(Outcome(0.0, low, high, 1.0, 0.5, 9))

    assert [found(0.1, 0.2), found(-0.2, -0.1), found(-0.1, 0.1), found(0.0, 0.1)] == ["shown", "harm", "open", "open"]
    assert found(float("nan"), float("nan")) == "open"
