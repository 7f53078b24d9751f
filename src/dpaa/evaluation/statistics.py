"""Is a difference between recommenders more than luck?  Paired over users, and over seeds where there are several.

All functions take `values`, (users, columns): one column per run, one row per user, NaN where a user has no value (no
relevant item of a group, say).  A `Contrast` names the columns of two sides; several columns of a side are runs of one
method that differ in their seed.  What is asked is the mean over users of the mean over seeds, one side minus the
other.

**Interval.**  Users and seeds are crossed: every run is measured on the same users.  n users are drawn n times with
replacement, and each brings the values of all its runs along: that accounts for users, and for the chance in what a
run does to a user.  Seeds are drawn within each side (seed 3 of one method has nothing to do with seed 3 of another,
so there is nothing to pair) from the runs' means, shrunk to the part of their variance that chance per user does not
explain already; drawing whole runs and users at once would count that chance three times (Owen, "The pigeonhole
bootstrap", Annals of Applied Statistics 2007).  Drawing from S makes a variance too small by (S − 1)/S, half of it for
two seeds; deviations are stretched by √(S/(S − 1)), those of users likewise.  Percentiles are taken, and their distance
from the estimate is stretched by t/z, where t has the degrees of freedom of the whole (Welch and Satterthwaite): with 3
seeds that differ much, with 1,000 users and one seed hardly at all.

**Test.**  If two recommenders are the same to every user, the sign of each user's difference is a coin (Fisher 1935;
Smucker et al., CIKM 2007, for ranked lists).  `p` is the share of coin series whose mean is at least as far from 0 as
the one found.  With several seeds, the mean found is first replaced by one that is as unlikely for users alone as the
mean found is for users and seeds together.

With one run on a side nothing can be known about the luck of its training, and neither number speaks of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from dpaa.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

RESAMPLES = 2_000
CONFIDENCE = 0.95
CHUNK = 4_000_000
"""Counts or signs held at once (32 MB)."""
LARGE_DEGREES = 1_000
"""Degrees of freedom from which Student's t is taken for normal (the quantile at .975 differs by 0.0024)."""
TIE = 1e-10
"""Sums whose difference is below this share of Σ|difference| are the same up to rounding."""


@dataclass(frozen=True)
class Contrast:
    """`mean(one) − scale · mean(other)`, by columns of `values`."""

    one: tuple[int, ...]
    other: tuple[int, ...]
    scale: float = 1.0
    """1 for a difference, 1 − margin for "at least this share of the other"."""


@dataclass(frozen=True)
class Outcome:
    """What the resampling says about one contrast."""

    estimate: float
    low: float
    """NaN with fewer than two users."""
    high: float
    p: float
    """Two-sided, that each user's difference is as likely the other way round; for scale 1.  NaN without users."""
    p_at_most_zero: float
    """One-sided, that the contrast is 0 or below; from the resampled means."""
    users: int
    """Users with a value on both sides."""


def compare_means(
    values: Floats,
    contrasts: Sequence[Contrast],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    confidence: float = CONFIDENCE,
) -> list[Outcome]:
    """Interval and test for each contrast; all share the same resampled users and the same coins."""
    check_choices(resamples, confidence)
    if not len(contrasts):
        return []
    means = resampled_means(values, resamples, seed)
    sides = [(_mean_over(values, c.one), _mean_over(values, c.other)) for c in contrasts]
    differences = np.stack([one - c.scale * other for c, (one, other) in zip(contrasts, sides, strict=True)], axis=1)
    spreads = [_Spread.of(values, c, differences[:, place]) for place, c in enumerate(contrasts)]
    whole = np.where(np.isnan(differences), 0.0, differences)
    found = np.array([spread.as_sum_of_users(whole[:, place]) for place, spread in enumerate(spreads)])
    p_values = sign_flip_p(whole, found, resamples, seed)
    rng = np.random.default_rng([seed, 2])
    outcomes = []
    for place, (contrast, spread) in enumerate(zip(contrasts, spreads, strict=True)):
        estimate = float(_column_mean(values, contrast.one) - contrast.scale * _column_mean(values, contrast.other))
        drawn = means[:, contrast.one].mean(axis=1) - contrast.scale * means[:, contrast.other].mean(axis=1)
        drawn = estimate + spread.stretch * (drawn - estimate) + spread.drawn_seeds(resamples, rng)
        low, high = spread.interval(estimate, drawn, confidence)
        below = spread.share_below(estimate, drawn)
        p = float(p_values[place]) if spread.users else float("nan")
        outcomes.append(Outcome(estimate, low, high, p, below, spread.users))
    return outcomes


def check_choices(resamples: int, confidence: float = CONFIDENCE) -> None:
    """Refuse what no interval can be made of."""
    if resamples < 100:
        raise InputError(f"resamples must be at least 100, got {resamples}; 2,000 are usual")
    if not 0.5 <= confidence < 1:
        raise InputError(f"confidence must be from 0.5 to below 1, got {confidence}")


def resampled_means(values: Floats, resamples: int, seed: int) -> Floats:
    """The mean of each column over n users drawn n times with replacement.  Returns (resamples, columns).

    How often each user is drawn is a row of counts; times the values it gives the sums of all columns at once.  NaNs
    count in neither sum nor number; a resample without any value of a column gives NaN.
    """
    n = len(values)
    there = ~np.isnan(values)
    filled = np.where(there, values, 0.0)
    patterns, pattern_of = _distinct_columns(there)
    rng = np.random.default_rng([seed, 0])
    means = np.empty((resamples, values.shape[1]))
    counts = np.empty((min(max(1, CHUNK // max(n, 1)), resamples), n))  # one for all chunks: fresh memory is slow
    for first in range(0, resamples, len(counts)):
        drawn = counts[: resamples - first]
        for row in drawn:
            row[:] = np.bincount(rng.integers(0, n, n), minlength=n)
        number = (drawn @ patterns)[:, pattern_of]
        with np.errstate(invalid="ignore", divide="ignore"):
            means[first : first + len(drawn)] = drawn @ filled / number
    return means


def sign_flip_p(differences: Floats, found: Floats, resamples: int, seed: int) -> Floats:
    """The share of coin series with |Σ ±difference| ≥ |found|, per column; `differences` (users, columns), no NaN.

    Columns with so few differences other than 0 that there are at most `resamples` series are counted through; for the
    others p = (1 + as far) / (1 + resamples), which is never 0 and keeps its level exactly (Phipson and Smyth 2010).
    """
    n, columns = differences.shape
    bar = np.abs(found) - TIE * np.abs(differences).sum(axis=0)
    p = np.ones(columns)
    filled = (differences != 0).sum(axis=0)
    few = filled < resamples.bit_length()  # 2^filled ≤ resamples
    for column in np.flatnonzero(few & (filled > 0)):
        kept = differences[differences[:, column] != 0, column]
        p[column] = np.mean(np.abs(_every_series(len(kept)) @ kept) >= bar[column])
    many = np.flatnonzero(~few)
    if not len(many):
        return p
    tossed = np.ascontiguousarray(differences[:, many])
    total = tossed.sum(axis=0)
    as_far = np.zeros(len(many), dtype=np.int64)
    rng = np.random.default_rng([seed, 1])
    heads = np.empty((min(max(1, CHUNK // n), resamples), n))
    for first in range(0, resamples, len(heads)):
        coins = heads[: resamples - first]
        coins[:] = np.unpackbits(rng.integers(0, 256, (len(coins), (n + 7) // 8), dtype=np.uint8), axis=1, count=n)
        as_far += (np.abs(2.0 * (coins @ tossed) - total) >= bar[many]).sum(axis=0)
    p[many] = (1 + as_far) / (1 + resamples)
    return p


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
    interval's level: .025); harm if it lies below, a loss beyond the margin; open otherwise.
    """
    if outcome.low > 0:
        return "shown"
    return "harm" if outcome.high < 0 else "open"


@dataclass(frozen=True, eq=False)
class _Spread:
    """Where the uncertainty of a contrast comes from."""

    users: int
    of_users: float
    """Variance of the mean of the per-user differences, chance per user and run included."""
    seed_effects: tuple[Floats, ...]
    """Per side with several runs: by how much each run is off for its seed, at the right variance."""
    of_seeds: float
    """Variance of the two means over seeds, together; 0 where there is one run on each side."""
    degrees: float

    @classmethod
    def of(cls, values: Floats, contrast: Contrast, differences: Floats) -> _Spread:
        kept = differences[~np.isnan(differences)]
        n = len(kept)
        of_users = float(kept.var(ddof=1)) / n if n > 1 else 0.0
        sides = ((contrast.one, 1.0), (contrast.other, contrast.scale))
        effects = tuple(scale * _seed_effects(values[:, columns]) for columns, scale in sides if len(columns) > 1)
        parts = [(float((effect**2).sum()) / len(effect) ** 2, len(effect) - 1) for effect in effects]
        of_seeds = sum(part for part, _ in parts)
        below = sum(part**2 / degrees for part, degrees in [*parts, (of_users, max(n - 1, 1))])
        return cls(n, of_users, effects, of_seeds, (of_users + of_seeds) ** 2 / below if below > 0 else np.inf)

    @property
    def stretch(self) -> float:
        """√(n/(n − 1)): what drawing from n users takes off their deviations."""
        return float(np.sqrt(self.users / max(self.users - 1, 1)))

    def drawn_seeds(self, resamples: int, rng: np.random.Generator) -> Floats:
        """What drawn seeds add to the contrast.  Returns (resamples,)."""
        added = np.zeros(resamples)
        for effect in self.seed_effects:
            n = len(effect)
            added += rng.multinomial(n, np.full(n, 1 / n), size=resamples) @ effect / n
        return added

    def interval(self, estimate: float, drawn: Floats, confidence: float) -> tuple[float, float]:
        """Percentiles, stretched by t/z."""
        if self.users < 2:
            return float("nan"), float("nan")
        tail = (1 - confidence) / 2
        ends = np.nanquantile(drawn, [tail, 1 - tail])
        wider = student_quantile(1 - tail, self.degrees) / NormalDist().inv_cdf(1 - tail)
        low, high = estimate + wider * (ends - estimate)
        return float(low), float(high)

    def share_below(self, estimate: float, drawn: Floats) -> float:
        """How likely a contrast of 0 or below is, by the resampled means: (1 + below) / (1 + resamples)."""
        if self.users < 2:
            return 1.0
        shift = self._normal_equivalent(estimate, self.of_users + self.of_seeds) - estimate
        return float((1 + np.sum(drawn + shift <= 0)) / (1 + len(drawn)))

    def as_sum_of_users(self, differences: Floats) -> float:
        """The sum over users whose tail among coin series is that of the estimate among users and seeds."""
        total = float(differences.sum())
        if not self.of_seeds:
            return total
        return self._normal_equivalent(total / self.users, self.of_users) * self.users

    def _normal_equivalent(self, estimate: float, variance: float) -> float:
        """`estimate / error` is Student's t; the normal number with the same tail, for an error of this variance."""
        whole = self.of_users + self.of_seeds
        if whole == 0:
            return estimate
        tail = max(student_tail(abs(estimate) / np.sqrt(whole), self.degrees), 1e-12)
        return float(np.sign(estimate) * max(-NormalDist().inv_cdf(tail), 0.0) * np.sqrt(variance))


def _seed_effects(runs: Floats) -> Floats:
    """How far each run's mean is from the mean of all, shrunk to the variance of seeds and stretched for resampling.

    The variance of run means is that of seeds plus σ²/n, where σ² is the chance in what a run does to a user: the mean
    square of what is left of a table of users × runs without its row and column means.  Returns (runs,).
    """
    runs = runs[~np.isnan(runs).any(axis=1)]
    n, s = runs.shape
    if n < 2:
        return np.zeros(s)
    means = runs.mean(axis=0)
    effects = means - means.mean()
    left = runs - runs.mean(axis=1, keepdims=True) - effects
    chance = float((left**2).sum()) / ((n - 1) * (s - 1)) / n
    variance = float((effects**2).sum()) / (s - 1)
    share = max(0.0, 1 - chance / variance) if variance > 0 else 0.0
    return np.asarray(effects * np.sqrt(share * s / (s - 1)))


def student_quantile(probability: float, degrees: float) -> float:
    """Student's t at a probability."""
    if degrees > LARGE_DEGREES:
        return NormalDist().inv_cdf(probability)
    angle, below = _student(degrees)
    return float(np.sqrt(degrees) * np.tan(np.interp(probability, below, angle)))


def student_tail(value: float, degrees: float) -> float:
    """The chance that Student's t is above a value ≥ 0."""
    if degrees > LARGE_DEGREES:
        return NormalDist().cdf(-value)
    angle, below = _student(degrees)
    return float(np.interp(-np.arctan(value / np.sqrt(degrees)), angle, below))


def _student(degrees: float) -> tuple[Floats, Floats]:
    """Angles and the distribution there: with t = √ν tan φ the density is ∝ cos^(ν − 1) φ, smooth and bounded."""
    angle = np.linspace(-np.pi / 2, np.pi / 2, 20_001)
    density = np.clip(np.cos(angle), 0.0, 1.0) ** (degrees - 1)
    below = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return angle, below / below[-1]


def _mean_over(values: Floats, columns: tuple[int, ...]) -> Floats:
    """Per user; NaN where any of the columns is."""
    return np.asarray(values[:, columns].mean(axis=1))


def _column_mean(values: Floats, columns: tuple[int, ...]) -> float:
    """The mean over columns of each column's mean over the users that have a value in it."""
    taken = values[:, columns]
    there = ~np.isnan(taken)
    number = there.sum(axis=0)
    if not number.all():
        return float("nan")
    return float((np.where(there, taken, 0.0).sum(axis=0) / number).mean())


def _distinct_columns(there: NDArray[np.bool_]) -> tuple[Floats, NDArray[Any]]:
    """The different columns of a mask as numbers, and which of them each column is."""
    known: dict[bytes, int] = {}
    pattern_of = np.array([known.setdefault(column.tobytes(), len(known)) for column in there.T])
    firsts = [int(np.argmax(pattern_of == pattern)) for pattern in range(len(known))]
    return there[:, firsts].astype(np.float64), pattern_of


def _every_series(n: int) -> Floats:
    """All series of n signs.  Returns (2^n, n)."""
    bits = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    return np.asarray(2.0 * bits - 1.0, dtype=np.float64)
