"""Which point?  The Pareto frontier, and one point: within a promise, for a target, or where returns diminish.

Every number that is reported of a choice comes from users held out of it (cross-fitting).  The validation users
are divided at random into five folds.  The rule is applied six times: without each fold, and on all users.  The first
five choices are measured on the users of the fold they have not seen; the sixth is what the call returns.

The promise "at least this share of the baseline's accuracy" must hold under every estimate of accuracy, that is, under
every exposure that is plausible (`_points.py`).  The rule takes the boldest point for the goal of those that keep the
promise with some certainty, a t statistic on the users that choose.  Certainties are tried from high to low, and each
is tested on the folds together (fixed-sequence testing, as in Learn-then-Test, Angelopoulos et al., 2021): the first
that is not confirmed ends it, and the last that was is applied to all users.  A bold point never costs a milder one
its confirmation, since the milder is tested before.  What is tested is the rule at that certainty, not the returned
point alone: `scripts/decision_level.py` measures how often whole calls break their promise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dpaa.debiasing._guarantee import lower_bound, p_value, users_needed
from dpaa.debiasing._points import Floats, Goal, Point, Rows

FOLDS = 5
CERTAINTIES = (5.0, 4.0, 3.5, 3.0, 2.75, 2.5, 2.25, 2.0, 1.75, 1.5, 1.25, 1.0, 0.75, 0.5, 0.25)
"""t statistics of the promise on the users that choose, tried in this order down to that of the confidence."""
EVERYBODY = -1
"""The last part of `without_each`."""


@dataclass(frozen=True)
class Guess:
    """What would have been chosen if the users at hand were all users.

    Parameters
    ----------
    index : of the point
    risk : p-value of the promise: how often chance alone makes choices that break it look as good as these
    users : validation users with whom they would be confirmed in 80% of all calls
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
    tested : how many certainties were tested
    guess : where nothing was confirmed and a point looks good
    picks : what the same rule chose without each fold; empty where the choice is not cross-fitted
    """

    index: int
    why: str
    promise: float | None = None
    confidence: float = 0.95
    kept: tuple[float, ...] = ()
    tested: int = 0
    guess: Guess | None = None
    picks: tuple[int, ...] = ()


def divide(n_users: int, seed: int) -> list[Rows]:
    """Divide users at random into folds of nearly equal size.

    Parameters
    ----------
    n_users : number of users
    seed : of the draw

    Returns
    -------
    rows of each fold, in the order drawn; fewer folds where there are fewer users
    """
    return np.array_split(np.random.default_rng([seed, 17]).permutation(n_users), min(FOLDS, n_users))


def without_each(folds: Sequence[Rows]) -> list[Rows]:
    """The users that choose: all but those of each fold, then everybody.

    Parameters
    ----------
    folds : of `divide`

    Returns
    -------
    ascending rows, one part more than folds; of a single user, everybody
    """
    everybody = np.sort(np.concatenate(folds))
    return [*(np.setdiff1d(everybody, fold) if len(folds) > 1 else everybody for fold in folds), everybody]


@dataclass(frozen=True, eq=False)
class Chooser:
    """Chooses among points by what they are worth to each user.

    Parameters
    ----------
    accuracy : for each point (estimates, users), what each user adds to its accuracy
    scores : (folds + 1, points) how good each is for the goal, by the users of `without_each`; higher is better
    folds : rows of the users
    base : index of the baseline
    """

    accuracy: Sequence[NDArray[np.float32]]
    scores: Floats
    folds: Sequence[Rows]
    base: int

    @classmethod
    def of(cls, points: Sequence[Point], goals: Sequence[Goal], folds: Sequence[Rows], base: int) -> Chooser:
        """From measured points."""
        scores = [goal_scores([point.values[part] for point in points], goals, base) for part in range(len(folds) + 1)]
        return cls([point.accuracy for point in points], np.array(scores), folds, base)

    def relative(self, part: int = EVERYBODY) -> Floats:
        """Accuracy of each point as a share of the baseline's, under the estimate that is worst for it, (points,)."""
        rows = without_each(self.folds)[part]
        means = np.array([values[:, rows].mean(axis=1, dtype=np.float64) for values in self.accuracy])
        return np.asarray((means / np.maximum(means[self.base], 1e-12)).min(axis=1))  # of (points, estimates)

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
        safety, tested, certainty = self._safety(promise), 0, None
        picks: tuple[int, ...] = ()
        # Below what the confidence asks for, the users that choose would not confirm their own choice.  Going lower
        # gained little and broke the promise in 7% of the draws of one log (`scripts/decision_level.py`).
        least = float(ndtri(confidence))
        for lower in (*(one for one in CERTAINTIES if one > least), least):
            tried = self._boldest(safety, lower)
            if self.base in tried:
                continue  # without some fold nothing is so certain
            tested += 1
            if self._p_value(tried, promise) > 1 - confidence:
                break
            certainty, picks = lower, tried
        users = sum(map(len, self.folds))
        if certainty is not None and (chosen := self._pick(EVERYBODY, safety, certainty)) != self.base:
            why = f"the boldest point that {users:,} users, each tested with a choice made without them, confirm at "
            kept = self._kept(picks, confidence)
            return Choice(chosen, f"{why}{confidence:.0%}", promise, confidence, kept, tested, picks=picks)
        guess = self._guess(safety, promise, confidence)
        why = f"{users:,} users, in five folds, confirm no point that does more for the goal at {confidence:.0%}"
        return Choice(self.base, why, promise, confidence, tested=tested, guess=guess)

    def _safety(self, promise: float) -> Floats:
        """How certainly each point keeps the promise, by the users of `without_each`, (folds + 1, points).

        It is the t statistic under the estimate that is worst for the point.  All parts have the standard error of the
        smallest, so that a certainty is the same demand on all users as on four fifths of them.
        """
        parts, base = without_each(self.folds), self.accuracy[self.base].astype(np.float64)
        safety, fewest = np.full((len(parts), len(self.accuracy)), -np.inf), min(map(len, parts))
        for index, values in enumerate(self.accuracy if len(self.folds) > 1 and fewest > 1 else ()):
            difference = values - promise * base  # (estimates, users)
            for part, rows in enumerate(parts):
                few = difference[:, rows]
                error = np.maximum(few.std(axis=1, ddof=1), 1e-12) / np.sqrt(fewest)
                safety[part, index] = (few.mean(axis=1) / error).min()
        return safety

    def _pick(self, part: int, safety: Floats, certainty: float) -> int:
        """The best point for the goal of those that are certain enough, of equals the safest; else the baseline."""
        score = self.scores[part]
        allowed = np.flatnonzero((safety[part] >= certainty) & (score > score[self.base]))
        return int(max(allowed, key=lambda one: (score[one], safety[part, one]), default=self.base))

    def _boldest(self, safety: Floats, certainty: float) -> tuple[int, ...]:
        """What is picked without each fold."""
        return tuple(self._pick(part, safety, certainty) for part in range(len(self.folds)))

    def _held_out(self, picks: Sequence[int]) -> list[tuple[Floats, Floats]]:
        """Per estimate, accuracy of the users under the choice made without them and under the baseline."""
        sides = [
            np.concatenate([self.accuracy[one][:, fold] for one, fold in zip(side, self.folds, strict=True)], axis=1)
            for side in (picks, [self.base] * len(self.folds))
        ]
        return list(zip(*(side.astype(np.float64) for side in sides), strict=True))

    def _kept(self, picks: Sequence[int], confidence: float) -> tuple[float, ...]:
        """Lower bounds of the share of the baseline's accuracy that is kept, under each estimate."""
        return tuple(lower_bound(*sides, confidence) for sides in self._held_out(picks))

    def _p_value(self, picks: Sequence[int], promise: float) -> float:
        """Of "the promise is broken under some estimate": the largest, as each must be refuted."""
        return max(p_value(*sides, promise) for sides in self._held_out(picks))

    def _guess(self, safety: Floats, promise: float, confidence: float) -> Guess | None:
        """The boldest point that keeps the promise on average."""
        index, picks = self._pick(EVERYBODY, safety, 0.0), self._boldest(safety, 0.0)
        if index == self.base:
            return None
        needed = max(users_needed(*sides, promise, confidence) for sides in self._held_out(picks))
        return Guess(index, self._p_value(picks, promise), needed)

    def knee(self) -> Choice:
        """Where returns diminish: the point of the frontier farthest above the line between its two ends.

        Accuracy and goal each run from 0 to 1 along it.  What does no more for the goal than the baseline, or has less
        than half of its accuracy, is no trade-off.
        """
        *picks, chosen = (self._knee(part) for part in range(len(self.folds) + 1))
        if chosen == self.base:
            return Choice(chosen, "no trade-off on the frontier is better than it")
        why = "the point of diminishing returns, farthest above the line between the frontier's ends"
        return Choice(chosen, why, picks=tuple(picks))

    def _knee(self, part: int) -> int:
        accuracy, score = self.relative(part), self.scores[part]
        allowed = (score > score[self.base]) & np.isfinite(score) & (accuracy >= 0.5)
        allowed[self.base] = np.isfinite(score[self.base])
        among = np.flatnonzero(allowed)
        line: list[int] = among[pareto(accuracy[among], score[among])].tolist()
        if len(line) > 2:
            shares = [(one[line] - one[line].min()) / (np.ptp(one[line]) or 1.0) for one in (accuracy, score)]
            return line[int(np.argmax(shares[0] + shares[1]))]
        return self.base if self.base in line or not line else line[0]


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
