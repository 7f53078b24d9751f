"""Which point?  The Pareto frontier, and one point: within a promise, for a target, or where returns diminish.

The validation users are divided at random.  A third of them *chooses*: the frontier, and the order in which points are
tested.  The others *confirm*, and all reported numbers are theirs.  The baseline is named by all of them.

The promise "at least this share of the baseline's accuracy" must hold under every estimate of accuracy, that is, under
every exposure that is plausible (`_points.py`).  The points of the frontier are tested from the safest to the boldest
(fixed-sequence testing, as in Learn-then-Test, Angelopoulos et al., 2021): the first that is not confirmed ends it, and
the last that was is the choice.  So of all calls at most 5% choose a point that breaks the promise, however many
points are tested; a bold point never costs a milder one its confirmation, since the milder is tested before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpaa.debiasing._guarantee import lower_bound, p_value, users_needed
from dpaa.debiasing._points import Floats, Goal, Point, Rows

CHOOSING = 1 / 3
"""Share of the validation users that choose; the others confirm."""


@dataclass(frozen=True)
class Guess:
    """What would have been chosen if the users at hand were all users.

    Parameters
    ----------
    index : of the point
    risk : p-value of the promise: how often chance alone makes a point that breaks it look as good as this one
    users : validation users with whom it would be confirmed in 80% of all calls
    """

    index: int
    risk: float
    users: float


@dataclass(frozen=True)
class Choice:
    """A point and why.

    Parameters
    ----------
    index : of the point
    why : in a sentence
    promise : share of the baseline's accuracy that must be kept; None without a promise
    confidence : one-sided, of the promise
    kept : share that is confirmed to be kept, under each estimate of accuracy
    tested : how many points were tested
    guess : where nothing was confirmed and a point looks good
    """

    index: int
    why: str
    promise: float | None = None
    confidence: float = 0.95
    kept: tuple[float, ...] = ()
    tested: int = 0
    guess: Guess | None = None


def divide(n_users: int, seed: int) -> tuple[Rows, Rows]:
    """Divide users at random into those that choose and those that confirm, at least one each where there are two.

    Parameters
    ----------
    n_users : number of users
    seed : of the draw

    Returns
    -------
    rows of both, in the order drawn
    """
    order = np.random.default_rng([seed, 17]).permutation(n_users)
    first = max(1, round(CHOOSING * n_users))
    return order[:first], order[first:]


@dataclass(frozen=True, eq=False)
class Chooser:
    """Chooses among points by what they are worth to each user.

    Parameters
    ----------
    accuracy : for each point (estimates, users), what each user adds to its accuracy
    score : (points,) how good each is for the goal, by the users that choose; higher is better
    choosing, confirming : rows of the users
    base : index of the baseline
    """

    accuracy: Sequence[NDArray[np.float32]]
    score: Floats
    choosing: Rows
    confirming: Rows
    base: int

    @classmethod
    def of(
        cls,
        points: Sequence[Point],
        goals: Sequence[Goal],
        users: tuple[Rows, Rows],
        base: int,
    ) -> Chooser:
        """From measured points."""
        score = goal_scores([point.values for point in points], goals, base)
        return cls([point.accuracy for point in points], score, *users, base)

    def relative(self) -> Floats:
        """Accuracy of each point as a share of the baseline's, under the estimate that is worst for it, (points,)."""
        means = np.array(
            [values[:, self.choosing].mean(axis=1, dtype=np.float64) for values in self.accuracy]
        )  # (points, estimates)
        return np.asarray((means / np.maximum(means[self.base], 1e-12)).min(axis=1))

    def frontier(self) -> list[int]:
        """The points that no other beats in both accuracy and goal, the most accurate first."""
        return pareto(self.relative(), self.score)

    def within(self, promise: float, confidence: float = 0.95) -> Choice:
        """Choose the best point for the goal that is confirmed to keep a share of the baseline's accuracy.

        Parameters
        ----------
        promise : share of the baseline's accuracy
        confidence : one-sided

        Returns
        -------
        Choice; the baseline where no point is confirmed
        """
        chosen, tested, sequence = self.base, 0, self._sequence(promise)
        for index in sequence:
            tested += 1
            if self._p_value(index, promise) > 1 - confidence:
                break
            chosen = index
        users = len(self.confirming)
        if chosen != self.base:
            why = f"the boldest of the points that {users:,} held-out users confirm at {confidence:.0%}"
            return Choice(chosen, why, promise, confidence, self.kept(chosen, confidence), tested)
        guess = self._guess(sequence, promise, confidence)
        why = f"{users:,} held-out users confirm no point that does more for the goal at {confidence:.0%}"
        return Choice(chosen, why, promise, confidence, tested=tested, guess=guess)

    def kept(self, index: int, confidence: float) -> tuple[float, ...]:
        """Bound the share of the baseline's accuracy that a point keeps, by the users that confirm.

        Parameters
        ----------
        index : of the point
        confidence : one-sided

        Returns
        -------
        the lower bound under each estimate
        """
        return tuple(lower_bound(*sides, confidence) for sides in zip(*self._confirming(index), strict=True))

    def _confirming(self, index: int) -> tuple[Floats, Floats]:
        """Of the users that confirm: accuracy of a point and of the baseline, (estimates, users) each."""
        one, base = (self.accuracy[side][:, self.confirming] for side in (index, self.base))
        return one.astype(np.float64), base.astype(np.float64)

    def _p_value(self, index: int, promise: float) -> float:
        """Of "the promise is broken under some estimate": the largest, as each must be refuted."""
        return max(p_value(*sides, promise) for sides in zip(*self._confirming(index), strict=True))

    def _sequence(self, promise: float) -> list[int]:
        """Points that do more for the goal than the baseline, the safest first, each better for the goal than the last.

        Safety is the t statistic of the promise on the users that choose, under the estimate that is worst for it.
        """
        if len(self.choosing) < 2:
            return []
        base = self.accuracy[self.base][:, self.choosing]
        better = np.flatnonzero(self.score > self.score[self.base])
        safety = np.full(len(self.score), -np.inf)
        for index in better.tolist():
            difference = self.accuracy[index][:, self.choosing].astype(np.float64) - promise * base
            error = np.maximum(difference.std(axis=1, ddof=1), 1e-12) / np.sqrt(len(self.choosing))
            safety[index] = (difference.mean(axis=1) / error).min()
        return [index for index in pareto(safety, self.score) if np.isfinite(safety[index])]

    def _guess(self, sequence: Sequence[int], promise: float, confidence: float) -> Guess | None:
        """The boldest point that keeps the promise on average on all users."""
        for index in reversed(sequence):
            sides = (self.accuracy[side].astype(np.float64) for side in (index, self.base))
            pairs = list(zip(*sides, strict=True))
            if all(one.mean() >= promise * base.mean() for one, base in pairs):
                needed = max(users_needed(one, base, promise, confidence) for one, base in pairs)
                return Guess(index, self._p_value(index, promise), needed / (1 - CHOOSING))
        return None

    def knee(self) -> Choice:
        """Where returns diminish: the point of the frontier farthest above the line between its two ends.

        Accuracy and goal each run from 0 to 1 along it.  What does less for the goal than the baseline, or has less
        than half of its accuracy, is no trade-off.
        """
        accuracy, score = self.relative(), self.score
        allowed = (score >= score[self.base]) & np.isfinite(score) & (accuracy >= 0.5)
        line = [index for index in self.frontier() if allowed[index]]
        chosen = self.base if self.base in line or not line else line[0]
        if len(line) > 2:
            shares = [(one[line] - one[line].min()) / (np.ptp(one[line]) or 1.0) for one in (accuracy, score)]
            chosen = line[int(np.argmax(shares[0] + shares[1]))]
        if chosen == self.base:
            return Choice(chosen, "no trade-off on the frontier is better than it")
        return Choice(chosen, "the point of diminishing returns, farthest above the line between the frontier's ends")


def most_accurate(points: Sequence[Point]) -> int:
    """Find the model that loses least accuracy to the best of them, under the estimate that is worst for it.

    All users name it: luck that makes a model the baseline then makes the promise harder to keep, never easier.

    Parameters
    ----------
    points : models as they are

    Returns
    -------
    index among the points
    """
    means = np.array([point.accuracy.mean(axis=1, dtype=np.float64) for point in points])  # (points, estimates)
    return int(np.argmax((means / np.maximum(means.max(axis=0), 1e-12)).min(axis=1)))


def goal_scores(values: Sequence[Sequence[float]], goals: Sequence[Goal], base: int) -> Floats:
    """How good each point is for the goals, (points,); higher is better.

    With several goals, the smallest of their gains over the baseline, each as a share of the largest that any point
    has: a point is as good as what it does least for.
    """
    turned = np.array([[goal.score(value) for goal, value in zip(goals, row, strict=True)] for row in values])
    if len(goals) == 1:
        return np.asarray(turned[:, 0])
    with np.errstate(invalid="ignore"):  # a goal without a value is −inf
        gain = turned - turned[base]
        shares = gain / np.maximum(gain.max(axis=0), 1e-12)
    return np.asarray(np.where(np.isnan(shares), -np.inf, shares).min(axis=1))


def pareto(accuracy: Floats, score: Floats) -> list[int]:
    """Indices that no other beats or equals in both numbers and beats in one, the most accurate first."""
    line: list[int] = []
    for index in np.lexsort((np.arange(len(accuracy)), -score, -accuracy)).tolist():
        if not line or score[index] > score[line[-1]]:
            line.append(index)
    return line
