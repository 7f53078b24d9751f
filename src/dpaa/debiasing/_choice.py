"""Which point?  The Pareto frontier, and one point: within a promise, for a target, or where returns diminish.

The promise "at least this share of the baseline's accuracy" is confirmed on held-out users (cross-fitting).  A rule
requires a certainty z: of the points whose accuracy, minus z standard errors, is within the promise, take the one that
is best for the goal, else the baseline.  The users are cut into folds; for each fold the rule chooses on the others,
and the fold's own users test its choice.  From the strictest rule on, rules are relaxed step by step, as long as
those users confirm the promise at 95%, one-sided; the first that is not confirmed ends it, so that trying several rules
costs no certainty (fixed-sequence testing).  The last rule that was confirmed then chooses on all users, with the
standard errors of as many users as a fold was chosen with.

A rule is tested only where it leaves the baseline for every fold: a fold that keeps the baseline keeps all of the
accuracy, and its users would vouch for the others' choices with the share that was allowed to be lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from dpaa.comparison.statistics import crossed_t
from dpaa.debiasing._points import Floats, Goal, Point, Rows

CERTAINTIES = (5.0, 4.0, 3.5, 3.0, 2.75, 2.5, 2.25, 2.0, 1.75, 1.5, 1.25, 1.0, 0.75, 0.5, 0.25)
"""Standard errors that rules require, the strictest first; as far as they are above those of the confidence."""
GUESS = 0.5
"""The confidence of a guess: nothing is promised, so that a rule that is not confirmed does not end the search."""


@dataclass(frozen=True)
class Change:
    """A relative change with its 95% interval over users; NaN without a value."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class Confirmation:
    """What held-out users say of a choice.

    Parameters
    ----------
    keep : promised share of the baseline's accuracy
    confidence : one-sided, with which they had to confirm it
    certainty : standard errors that the applied rule requires; None: none was confirmed
    change : of accuracy against the baseline, on held-out users
    users : how many
    """

    keep: float
    confidence: float
    certainty: float | None
    change: Change
    users: int


@dataclass(frozen=True)
class Choice:
    """A point, why in a sentence, and what held-out users say where there was a promise."""

    index: int
    why: str
    confirmation: Confirmation | None = None


@dataclass(frozen=True, eq=False)
class Chooser:
    """Chooses among points by what they are worth to each user.

    Parameters
    ----------
    accuracy : (points, users) what each user adds to a point's accuracy
    score : (points,) how good each is for the goal; higher is better
    outside : (folds, points) the same for the users outside of each fold
    folds : rows of the users
    base : index of the baseline
    """

    accuracy: Floats
    score: Floats
    outside: Floats
    folds: Sequence[Rows]
    base: int

    @classmethod
    def of(cls, points: Sequence[Point], goals: Sequence[Goal], folds: Sequence[Rows], base: int) -> Chooser:
        """From measured points."""
        score = _scores([point.values for point in points], goals, base)
        outside = [_scores([point.outside[fold] for point in points], goals, base) for fold in range(len(folds))]
        return cls(np.array([point.accuracy for point in points]), score, np.array(outside), folds, base)

    def means(self) -> Floats:
        """Accuracy of each point, (points,)."""
        return np.array([values.mean() for values in self.accuracy])

    def frontier(self) -> list[int]:
        """The points that no other beats in both accuracy and goal, the most accurate first."""
        return _pareto(self.means(), self.score)

    def within(self, keep: float, confidence: float = 0.95) -> Choice:
        """The best point that keeps a share of the baseline's accuracy, as held-out users confirm, or the baseline.

        Parameters
        ----------
        keep : share of the baseline's accuracy
        confidence : one-sided

        Returns
        -------
        Choice
        """
        users = self.accuracy.shape[1]
        fewest = users - max(map(len, self.folds))  # that anything is chosen on
        chosen, certainty = self.base, None
        base = held_out = self.accuracy[self.base]
        if fewest > 1:
            everybody = np.arange(users)
            rules = [
                self._rule(keep, fewest, np.setdiff1d(everybody, fold), score)
                for fold, score in zip(self.folds, self.outside, strict=True)
            ]
            least = float(stdtrit(fewest - 1, confidence))
            for required in [*(one for one in CERTAINTIES if one > least), max(least, 0.0)]:
                picked = [rule(required) for rule in rules]
                if self.base in picked:
                    continue
                values = np.empty(users)
                for rows, point in zip(self.folds, picked, strict=True):
                    values[rows] = self.accuracy[point, rows]
                if crossed_t(values[:, None], base[:, None], keep, 2 * confidence - 1)[1] >= 0:
                    certainty, held_out = required, values
                elif confidence > GUESS:
                    break
            if certainty is not None:
                chosen = self._rule(keep, fewest, everybody, self.score)(certainty)
        promise = f"confirmed at {confidence:.0%} to keep {keep:.4g} of the baseline's accuracy"
        why = (
            f"no point that does more for the goal could be {promise}, by {users:,} validation users"
            if chosen == self.base
            else f"the best for the goal that is {promise}"
        )
        change = relative_change(held_out, base)
        return Choice(chosen, why, Confirmation(keep, confidence, certainty, change, users))

    def _rule(self, keep: float, users: int, rows: Rows, score: Floats) -> Callable[[float], int]:
        """Chooses on some users, at least two; standard errors are those of so many users."""
        promised = keep * self.accuracy[self.base][rows]
        # One point at a time: all differences at once would be as large as the points.
        moments = [(one.mean(), one.std(ddof=1)) for one in (values[rows] - promised for values in self.accuracy)]
        difference, error = np.array(moments).T / [[1.0], [np.sqrt(users)]]

        def choose(certainty: float) -> int:
            sure = np.flatnonzero((difference - certainty * error >= 0) & (score > score[self.base]))
            return max(sure.tolist(), key=lambda point: (score[point], difference[point]), default=self.base)

        return choose

    def knee(self) -> Choice:
        """Where returns diminish: the point of the frontier farthest above the line between its two ends.

        Accuracy and goal each run from 0 to 1 along it.  What does less for the goal than the baseline, or has less
        than half of its accuracy, is no trade-off.
        """
        accuracy, score = self.means(), self.score
        allowed = (score >= score[self.base]) & np.isfinite(score) & (accuracy >= 0.5 * accuracy[self.base])
        line = [index for index in self.frontier() if allowed[index]]
        chosen = self.base if self.base in line or not line else line[0]
        if len(line) > 2:
            shares = [(one[line] - one[line].min()) / (np.ptp(one[line]) or 1.0) for one in (accuracy, score)]
            chosen = line[int(np.argmax(shares[0] + shares[1]))]
        if chosen == self.base:
            return Choice(chosen, "no trade-off on the frontier is better than it")
        return Choice(chosen, "the point of diminishing returns, farthest above the line between the frontier's ends")


def _scores(values: Sequence[Sequence[float]], goals: Sequence[Goal], base: int) -> Floats:
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


def _pareto(accuracy: Floats, score: Floats) -> list[int]:
    """Indices that no other beats or equals in both numbers and beats in one, the most accurate first."""
    line: list[int] = []
    for index in np.lexsort((np.arange(len(accuracy)), -score, -accuracy)).tolist():
        if not line or score[index] > score[line[-1]]:
            line.append(index)
    return line


def relative_change(one: Floats, other: Floats) -> Change:
    """`r = mean(one) / mean(other) − 1` over users, with its interval.

    The interval is that of a ratio of two means over the same users (the delta method): Student's t of
    `one − (1 + r) other`, as a share of the other's mean.

    Parameters
    ----------
    one, other : (users,)

    Returns
    -------
    NaN with fewer than two users, or where the other's mean is not above 0
    """
    level = float(other.mean())
    if len(other) < 2 or level <= 0:
        return Change(float("nan"), float("nan"), float("nan"))
    ratio = float(one.mean()) / level
    _, low, high, _ = crossed_t(one[:, None] / level, other[:, None] / level, ratio, 0.95)
    return Change(ratio - 1, ratio - 1 + float(low), ratio - 1 + float(high))
