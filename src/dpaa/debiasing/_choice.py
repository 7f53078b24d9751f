"""Select a point of the Pareto frontier: within a promise, for a target, or where returns diminish.

Every number that is reported of a choice comes from users held out of it (repeated cross-fitting).  The validation
users are divided at random into five folds, five times.  The rule is applied without each of these folds, and on all
users.  Each of the first 25 choices is measured on the users of the fold that it has not seen, so that every user is
measured five times; the last choice is what the call returns.  With a single division the result depends more on which
points its folds happen to choose, and a little less is confirmed.

The promise "at least this share of the baseline's accuracy" must hold under every estimate of accuracy, that is, under
every plausible exposure (`_points.py`).  The rule selects the point that improves the goal most among those that keep
the promise with a required certainty, a t statistic on the selecting users.  Certainties are tried from high to low,
and each is tested on all folds combined (fixed-sequence testing, as in Learn-then-Test, Angelopoulos et al., 2021):
testing stops at the first that is not confirmed, and the last confirmed one is applied to all users.  Certainties at
which most folds keep the baseline are skipped; where fewer do, theirs counts as no loss.  Conservative choices are
tested first, so a failed aggressive one does not invalidate them.  The test is about the rule at that certainty, not
about the returned point: `scripts/decision_level.py` measures how often whole calls break their promise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dpaa.data.ids import Floats
from dpaa.debiasing._guarantee import lower_bound, p_value, users_needed
from dpaa.debiasing._points import Goal, Point, Rows

FOLDS, DIVISIONS = 5, 5
CERTAINTIES = (5.0, 4.0, 3.5, 3.0, 2.75, 2.5, 2.25, 2.0, 1.75, 1.5, 1.25, 1.0, 0.75, 0.5, 0.25)
"""t statistics of the promise on the users that choose, tried in this order down to that of the confidence."""
EVERYBODY = -1
"""The last part of `without_each`."""


@dataclass(frozen=True)
class Guess:
    """The best guess if no point is confirmed, judged by averages over the available users.

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
    """The chosen point, and why.

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
    """Divide users at random into folds of nearly equal size, several times.

    Parameters
    ----------
    n_users : number of users
    seed : of the draw

    Returns
    -------
    rows of each fold, in the order drawn, one division after the other; fewer folds where there are fewer users
    """
    rng, n_folds = np.random.default_rng([seed, 17]), min(FOLDS, n_users)
    return [fold for _ in range(DIVISIONS) for fold in np.array_split(rng.permutation(n_users), n_folds)]


def without_each(folds: Sequence[Rows]) -> list[Rows]:
    """List the selecting users: all but those of each fold, then all users.

    Parameters
    ----------
    folds : of `divide`

    Returns
    -------
    ascending rows, one part more than folds; of a single user, everybody
    """
    everybody = np.unique(np.concatenate(folds))
    return [*(np.setdiff1d(everybody, fold) if len(everybody) > 1 else everybody for fold in folds), everybody]


@dataclass(frozen=True, eq=False)
class Chooser:
    """Selects among points by per-user accuracy and goal values.

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
        """Prepare the choice among measured points."""
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
        for lower in (*(c for c in CERTAINTIES if c > least), least):
            tried = self._boldest(safety, lower)
            if 2 * tried.count(self.base) > len(tried):
                continue  # without most folds nothing is so certain
            tested += 1
            if self._p_value(tried, promise) > 1 - confidence:
                break
            certainty, picks = lower, tried
        users = self.accuracy[self.base].shape[1]
        if certainty is not None and (chosen := self._pick(EVERYBODY, safety, certainty)) != self.base:
            why = f"the largest improvement that {users:,} held-out users ({len(self.folds)} folds) confirm at "
            kept = self._kept(picks, confidence)
            return Choice(chosen, f"{why}{confidence:.0%}", promise, confidence, kept, tested, picks=picks)
        guess = self._guess(safety, promise, confidence)
        why = f"{users:,} held-out users confirm no point that improves the goal at {confidence:.0%}"
        return Choice(self.base, why, promise, confidence, tested=tested, guess=guess)

    def _safety(self, promise: float) -> Floats:
        """Compute how certainly each point keeps the promise, by the users of `without_each`, (folds + 1, points).

        It is the t statistic under the estimate that is worst for the point.  All parts have the standard error of the
        smallest, so that a certainty is the same demand on all users as on four fifths of them.
        """
        parts, base = without_each(self.folds), self.accuracy[self.base].astype(np.float64)
        safety, fewest = np.full((len(parts), len(self.accuracy)), -np.inf), min(map(len, parts))
        for index, values in enumerate(self.accuracy if fewest > 1 else ()):
            difference = values - promise * base  # (estimates, users)
            for part, rows in enumerate(parts):
                few = difference[:, rows]
                error = np.maximum(few.std(axis=1, ddof=1), 1e-12) / np.sqrt(fewest)
                safety[part, index] = (few.mean(axis=1) / error).min()
        return safety

    def _pick(self, part: int, safety: Floats, certainty: float) -> int:
        """Pick the best point for the goal of those certain enough (ties: the safest), else the baseline."""
        score = self.scores[part]
        allowed = np.flatnonzero((safety[part] >= certainty) & (score > score[self.base]))
        return int(max(allowed, key=lambda one: (score[one], safety[part, one]), default=self.base))

    def _boldest(self, safety: Floats, certainty: float) -> tuple[int, ...]:
        """Pick a point without each fold."""
        return tuple(self._pick(part, safety, certainty) for part in range(len(self.folds)))

    def _held_out(self, picks: Sequence[int]) -> list[tuple[Floats, Floats]]:
        """Per estimate, accuracy of the users under the choices made without them, and under the baseline."""
        base = self.accuracy[self.base].astype(np.float64)  # (estimates, users)
        held_out = np.zeros(base.shape)
        for index, fold in zip(picks, self.folds, strict=True):
            held_out[:, fold] += self.accuracy[index][:, fold]
        held_out /= sum(map(len, self.folds)) / base.shape[1]  # how often each user was held out
        return list(zip(held_out, base, strict=True))

    def _kept(self, picks: Sequence[int], confidence: float) -> tuple[float, ...]:
        """Lower bounds of the share of the baseline's accuracy that is kept, under each estimate."""
        return tuple(lower_bound(*sides, confidence) for sides in self._held_out(picks))

    def _p_value(self, picks: Sequence[int], promise: float) -> float:
        """Compute the p-value of "the promise is broken under some estimate": the largest over the estimates."""
        return max(p_value(*sides, promise) for sides in self._held_out(picks))

    def _guess(self, safety: Floats, promise: float, confidence: float) -> Guess | None:
        """Find the point with the largest improvement that keeps the promise on average."""
        index, picks = self._pick(EVERYBODY, safety, 0.0), self._boldest(safety, 0.0)
        if index == self.base:
            return None
        needed = max(users_needed(*sides, promise, confidence) for sides in self._held_out(picks))
        return Guess(index, self._p_value(picks, promise), needed)

    def knee(self) -> Choice:
        """Choose the point of diminishing returns: the one farthest above the line between the frontier's two ends.

        Accuracy and goal are scaled to 0 … 1 along it.  Points that do not improve the goal over the baseline, or have
        less than half of its accuracy, are excluded.
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
            shares = [(merit[line] - merit[line].min()) / (np.ptp(merit[line]) or 1.0) for merit in (accuracy, score)]
            return line[int(np.argmax(shares[0] + shares[1]))]
        return self.base if self.base in line or not line else line[0]


def most_accurate(points: Sequence[Point]) -> int:
    """Find the model that loses least accuracy to the best of them, under the estimate that is worst for it.

    It is determined on all users: if a model is the baseline by chance, the promise becomes harder to keep, not easier.

    Parameters
    ----------
    points : models as they are

    Returns
    -------
    index among the points
    """
    means = np.array([point.means for point in points])  # (points, estimates)
    return int(np.argmax((means / np.maximum(means.max(axis=0), 1e-12)).min(axis=1)))


def goal_scores(values: Sequence[Sequence[float]], goals: Sequence[Goal], base: int) -> Floats:
    """Score each point by the goals, (points,); higher is better.

    With several goals it is the smallest gain over the baseline, each gain divided by the largest of any point: the
    least improved goal counts.
    """
    turned = np.array([[goal.score(value) for goal, value in zip(goals, row, strict=True)] for row in values])
    if len(goals) == 1:
        return np.asarray(turned[:, 0])
    with np.errstate(invalid="ignore"):  # a goal without a value is −inf
        gain = turned - turned[base]
        shares = gain / np.maximum(gain.max(axis=0), 1e-12)
    return np.asarray(np.where(np.isnan(shares), -np.inf, shares).min(axis=1))


def pareto(accuracy: Floats, score: Floats) -> list[int]:
    """Find the Pareto-optimal indices, the most accurate first."""
    line: list[int] = []
    for index in np.lexsort((np.arange(len(accuracy)), -score, -accuracy)).tolist():
        if not line or score[index] > score[line[-1]]:
            line.append(index)
    return line
