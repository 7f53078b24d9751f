"""Test differences between recommenders over users, and over seeds where there are several.

All functions take `values`, (users, columns): one column per run, one row per user, NaN where a user has no value (no
relevant item of a group, say).  A `Contrast` names the columns of two sides; several columns of a side are runs of one
method that differ in their seed.  The quantity is the mean over users of the mean over seeds, one side minus the
other, over the users with a value in all of these columns.

Interval and p-value are one statement: p is below 1 − confidence exactly where the interval leaves 0 out.

With several runs on a side it is Student's t for users crossed with runs: the error has a part of users and a part of
runs, with Satterthwaite's degrees of freedom, and the same is computed from runs alone; p is the larger of the two, the
interval the wider.  With one run on each side the signs of the users' differences are permuted (Fisher 1935; Hartigan's
typical values, JASA 1969), and neither number includes run-to-run training variance.  `docs/metrics.md` derives both
("How the tests of `dpaa compare` work") and has their simulated levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from dpaa.data.ids import Floats, Mask

Ends = tuple[Floats, Floats, Floats]
"""Lower ends, upper ends and p-values."""
RESAMPLES = 2_000
"""Number of sign-flip permutations, with one run on each side."""
CONFIDENCE = 0.95
CHUNK = 4_000_000
"""Signs, or means of sign-flip permutations, held at once (32 MB)."""
TIE = 1e-10
"""Sums below this share of Σ|difference| are 0 up to rounding."""
ROUNDING = 1e-14
"""A user's difference below this share of what is subtracted is 0 up to rounding."""


@dataclass(frozen=True)
class Contrast:
    """`mean(one) − scale · mean(other)`, by columns of `values`."""

    one: tuple[int, ...]
    other: tuple[int, ...]
    scale: float = 1.0
    """1 for a difference, 1 − margin for "at least this share of the other"."""


@dataclass(frozen=True)
class Outcome:
    """Estimate, interval and p-values of one contrast."""

    estimate: float
    low: float
    """NaN where there is no interval: fewer than two users, or too few sign flips (at 95%, below six users)."""
    high: float
    p: float
    """Two-sided, that the contrast is 0.  NaN without users, 1 with one."""
    p_at_most_zero: float
    """One-sided, that the contrast is 0 or below; under (1 − confidence)/2 exactly where the interval is above 0."""
    users: int
    """Users with a value in every column."""
    by_coins: bool = False
    """Whether this comes from sign-flip permutations rather than from Student's t."""


def compare_means(
    values: Floats,
    contrasts: Sequence[Contrast],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    confidence: float = CONFIDENCE,
) -> list[Outcome]:
    """Interval and test for each contrast; `resamples` and `seed` are those of sign flips, the same for all."""
    outcomes: dict[int, Outcome] = {}
    for_coins: dict[int, Floats] = {}
    for index, contrast in enumerate(contrasts):
        one, other = values[:, contrast.one], values[:, contrast.other]
        there = ~(np.isnan(one).any(axis=1) | np.isnan(other).any(axis=1))
        users = int(there.sum())
        if users > 1 and (runs_differ(one[there]) or runs_differ(other[there])):
            estimate, low, high, p = map(float, crossed_t(one[there], other[there], contrast.scale, confidence))
            outcomes[index] = _outcome(estimate, low, high, p, users, by_coins=False)
        else:
            for_coins[index] = np.where(there, _user_differences(one, other, contrast.scale), np.nan)
    if for_coins:
        table = np.stack(list(for_coins.values()), axis=1)
        ends = np.stack(sign_flips(table, resamples, seed, confidence), axis=1)
        for index, differences, (low, high, p) in zip(for_coins, table.T, ends.tolist(), strict=True):
            kept = differences[~np.isnan(differences)]
            estimate = float(kept.mean()) if len(kept) else float("nan")
            outcomes[index] = _outcome(estimate, low, high, p, len(kept), by_coins=True)
    return [outcomes[index] for index in range(len(contrasts))]


def _outcome(estimate: float, low: float, high: float, p: float, users: int, *, by_coins: bool) -> Outcome:
    at_most_zero = 1.0 if users < 2 else p / 2 if estimate > 0 else 1 - p / 2
    # Where all differences are the same, rounding may put the estimate a last digit outside of its interval.
    return Outcome(estimate, min(low, estimate), max(high, estimate), p, at_most_zero, users, by_coins)


def _user_differences(one: Floats, other: Floats, scale: float = 1.0) -> Floats:
    """`mean(one) − scale · mean(other)` over runs, per user; (..., users, runs) each.  Returns (..., users)."""
    first, second = one.mean(axis=-1), scale * other.mean(axis=-1)
    difference = first - second
    return np.where(np.abs(difference) <= ROUNDING * (np.abs(first) + np.abs(second)), 0.0, difference)


def runs_differ(side: Floats) -> Mask:
    """Whether any user's value differs between the runs of a side, (..., users, runs).  Returns (...)."""
    return np.asarray((side[..., 1:] != side[..., :1]).any(axis=(-2, -1)))


def crossed_t(
    one: Floats, other: Floats, scale: float = 1.0, confidence: float = CONFIDENCE
) -> tuple[Floats, Floats, Floats, Floats]:
    """Student's t for users crossed with runs: see above.  Sides are (..., users, runs), at least two users, no NaN.

    Returns the estimate, the ends of the interval and the two-sided p, (...) each.  Without any spread the interval is
    a point, and p is 1 where that is 0 and 0 elsewhere.
    """
    differences = _user_differences(one, other, scale)
    users = differences.shape[-1]
    estimate = differences.mean(axis=-1)
    of_users = differences.var(axis=-1, ddof=1) / users  # A
    degrees = weight = between = interaction = np.zeros(estimate.shape)
    for side, factor in ((one, 1.0), (other, scale)):
        runs = side.shape[-1]
        if runs > 1:
            means = side.mean(axis=-2, keepdims=True)
            off = means - means.mean(axis=-1, keepdims=True)
            rest = side - side.mean(axis=-1, keepdims=True) - off
            lucky = runs_differ(side)
            degrees = degrees + lucky * (runs - 1)
            weight = weight + lucky * factor**2 / runs
            between = between + lucky * (off**2).sum(axis=(-2, -1))
            interaction = interaction + lucky * (rest**2).sum(axis=(-2, -1))
    degrees = np.maximum(degrees, 1)  # no runs that differ: the share below is 0
    of_runs = weight * between / degrees  # B
    of_both = weight * interaction / degrees / (users - 1) / users  # C
    alone = np.maximum(of_users - of_both, 0.0)
    # With few users both parts can vanish though users differ; then their differences are all there is to go by.
    alone = np.where(alone + of_runs > TIE * of_users, alone, of_users)
    return estimate, *student(estimate, alone, of_runs, degrees, users, confidence)


def student(
    estimate: Floats, of_users: Floats, of_runs: Floats, degrees: Floats, users: int, confidence: float = CONFIDENCE
) -> Ends:
    """Ends of the interval and two-sided p of estimates with variances of two sources, that of runs with `degrees`.

    Both are the wider and the larger of two: of the whole with Satterthwaite's degrees, and of the runs alone.
    """
    whole = of_users + of_runs
    share = np.divide(of_runs, whole, out=np.zeros(whole.shape), where=whole > 0)
    of_whole = 1 / (share**2 / degrees + (1 - share) ** 2 / (users - 1))
    reach, p = np.zeros(whole.shape), np.zeros(whole.shape)
    for variance, freedom in ((whole, of_whole), (of_runs, degrees)):
        error = np.sqrt(variance)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(estimate == 0, 0.0, np.abs(estimate) / error)
        reach = np.maximum(reach, stdtrit(freedom, (1 + confidence) / 2) * error)
        p = np.maximum(p, 2 * stdtr(freedom, -t))
    return estimate - reach, estimate + reach, p


def sign_flips(differences: Floats, resamples: int, seed: int, confidence: float = CONFIDENCE) -> Ends:
    """The interval and the two-sided p of each column of differences, (users, columns), NaN where a user has none.

    Columns with so few users that there are at most `resamples` series are counted through: p = as far / series.  For
    others p = (1 + as far) / (1 + resamples), which is never 0 and keeps its level exactly (Phipson and Smyth 2010).
    """
    there = ~np.isnan(differences)
    users = there.sum(axis=0)
    low, high, p = np.full((3, differences.shape[1]), np.nan)
    few = users < resamples.bit_length()  # 2^users ≤ resamples
    for column in np.flatnonzero(few & (users > 0)):
        coins = np.arange(users[column])
        series = ((np.arange(2 ** len(coins))[:, None] >> coins) & 1).astype(np.float64)  # (2^users, users)
        ends = _Tossed(differences[there[:, column], column][:, None]).means(series)
        possible = np.arange(len(series) + 1) / len(series)
        low[[column]], high[[column]], p[[column]] = _inverted(*ends, possible, confidence)
    many = np.flatnonzero(~few)
    possible = np.arange(1, resamples + 2) / (resamples + 1)
    width = max(1, CHUNK // resamples)
    for first in range(0, len(many), width):
        block = many[first : first + width]
        ends = _drawn_means(_Tossed(differences[:, block]), resamples, seed)
        low[block], high[block], p[block] = _inverted(*ends, possible, confidence)
    return low, high, p


def _drawn_means(tossed: _Tossed, resamples: int, seed: int) -> tuple[Floats, Floats]:
    """The two means of random series, the same series for any columns.  Returns (resamples, columns) each."""
    n, columns = tossed.differences.shape
    smaller, larger = np.empty((2, resamples, columns))
    rng = np.random.default_rng([seed, 1])
    heads = np.empty((min(max(1, CHUNK // n), resamples), n))  # one for all chunks: fresh memory is slow
    for first in range(0, resamples, len(heads)):
        coins = heads[: resamples - first]
        words = rng.integers(0, 2**64, (len(coins), (n + 63) // 64), dtype=np.uint64)  # the same in chunks of any size
        coins[:] = np.unpackbits(words.view(np.uint8), axis=1, count=n)
        rows = slice(first, first + len(coins))
        smaller[rows], larger[rows] = tossed.means(coins)
    return smaller, larger


class _Tossed:
    """Differences, (users, columns), whose users are parted into heads and tails."""

    def __init__(self, differences: Floats) -> None:
        there = ~np.isnan(differences)
        self.differences = np.where(there, differences, 0.0)
        self._users = there.sum(axis=0)
        self._there = there.astype(np.float64)
        self._total = self.differences.sum(axis=0)
        self._tie = TIE * np.abs(self.differences).sum(axis=0)

    def means(self, heads: Floats) -> tuple[Floats, Floats]:
        """The smaller and the larger of the means over heads and over tails; `heads` (series, users) of 0 and 1.

        A series of heads or tails alone is as far whatever is taken off the differences: −∞ and ∞.  Returns (series,
        columns) each.
        """
        number = heads @ self._there
        of_heads = heads @ self.differences
        of_tails = self._total - of_heads
        # Rounding leaves a sum of 0 on either side of it, which would decide whether the series counts as far.
        for sums in (of_heads, of_tails):
            sums[np.abs(sums) <= self._tie] = 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            of_heads /= number
            of_tails /= self._users - number
        alike = (number == 0) | (number == self._users)
        return (
            np.where(alike, -np.inf, np.minimum(of_heads, of_tails)),
            np.where(alike, np.inf, np.maximum(of_heads, of_tails)),
        )


def _inverted(smaller: Floats, larger: Floats, possible: Floats, confidence: float) -> Ends:
    """Ends of the interval and p by column, from means of (series, columns); `possible` are p of 0, 1, 2 … as far.

    All series have the mean found between their two, so that below it those as far from δ are those with a smaller
    mean of at most δ: p(δ) reaches the level where enough of them do.
    """
    p = possible[((smaller <= 0) & (larger >= 0)).sum(axis=0)]
    enough = int(np.searchsorted(possible, round(1 - confidence, 12)))  # 1 − .95 is a little above .05
    if not enough:
        return np.full_like(p, np.nan), np.full_like(p, np.nan), p
    low = np.partition(smaller, enough - 1, axis=0)[enough - 1]
    high = np.partition(larger, len(larger) - enough, axis=0)[len(larger) - enough]
    return np.where(np.isinf(low), np.nan, low), np.where(np.isinf(high), np.nan, high), p


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction: the chance of any false alarm in the family stays below the level (Holm 1979).

    The i-th smallest of m is multiplied by m − i + 1, never below the one before it and at most 1.  NaNs are no tests:
    they stay and are not counted.
    """
    p = np.asarray(p_values, dtype=np.float64)
    corrected = np.full(len(p), np.nan)
    order = np.argsort(p, kind="stable")
    order = order[~np.isnan(p[order])]
    factors = np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(factors * p[order]))
    return [float(value) for value in corrected]


def no_worse(outcome: Outcome) -> str:
    """Non-inferiority, for a contrast with scale 1 − margin: "shown", "harm" or "open".

    Shown if the whole interval of `mean(one) − (1 − margin) · mean(other)` lies above 0 (a one-sided test at half the
    interval's level: 0.025); harm if it lies below, a loss beyond the margin; open otherwise.
    """
    if outcome.low > 0:
        return "shown"
    return "harm" if outcome.high < 0 else "open"
