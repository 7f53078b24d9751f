"""Which point?  The Pareto frontier, and one point of it: within a promise, for a target, or where returns diminish.

The promise "at least this share of the baseline's accuracy" is kept on users held out from the choice
(cross-fitting).  A rule asks for a certainty z: of the points whose accuracy, minus z standard errors, is within the
promise, take the one that is best for the goal, else the baseline.  The users are cut into folds; for each fold the
rule chooses on the others, and the fold's own users say what its choice is worth.  From the strictest rule on, rules
are relaxed step by step, as long as those users confirm the promise at 95 %, one-sided; the first that is not confirmed
ends it, so that trying several rules costs no certainty (fixed-sequence testing).  No rule asks for less certainty than
the confidence does.  The last rule that was confirmed then chooses on all users, as strictly as in the folds: its
standard errors are those of as many users as a fold was chosen for with.

A rule is put to the test only where it leaves the baseline for every fold: a fold that keeps the baseline keeps all of
the accuracy, and its users would vouch for the others' choices with the share that was allowed to be lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtrit

from dpaa.auditing import Check
from dpaa.comparison.statistics import crossed_t
from dpaa.debiasing._points import Estimate, Floats, Goal, Point, Rows, measured_goals
from dpaa.errors import InputError

CERTAINTIES = (5.0, 4.0, 3.5, 3.0, 2.75, 2.5, 2.25, 2.0, 1.75, 1.5, 1.25, 1.0, 0.75, 0.5, 0.25)
"""Standard errors that rules ask for, the strictest first; as far as they are above those of the confidence."""
CONFIDENCE = 0.95
"""Of the intervals that are shown."""
LESS_SURE = (0.9, 0.8, 0.5)
"""Lower confidences whose choices are shown beside that of the wanted one."""
GUESS = 0.5
"""The confidence of a guess: nothing is promised, so that a rule that is not confirmed does not end the search."""


@dataclass(frozen=True)
class Change:
    """A relative change with its 95 % interval over users (see `relative_change`); NaN without a value."""

    estimate: float
    low: float
    high: float

    def in_words(self) -> str:
        """`−1.1 % (between −2.0 and −0.2 %)`."""
        if not np.isfinite(self.estimate):
            return "not known"
        return f"{percent(self.estimate)} (between {percent(self.low).removesuffix(' %')} and {percent(self.high)})"


def percent(share: float) -> str:
    """With its sign: `+58 %`, `−1.1 %`."""
    digits = 0 if abs(share) >= 0.1 else 1
    return f"{share:+.{digits}%}".replace("-", "−").replace("%", " %")


@dataclass(frozen=True)
class Confirmation:
    """What held-out users say of a choice."""

    keep: float
    """Promised share of the baseline's accuracy."""
    confidence: float
    """One-sided, with which they had to confirm it."""
    certainty: float | None
    """Standard errors that the applied rule asks for; None: none was confirmed."""
    change: Change
    """Of accuracy against the baseline, on held-out users."""
    users: int
    folds: int
    refused: float | None
    """The certainty that those users did not confirm; None where all were, or there is nothing to confirm."""


@dataclass(frozen=True)
class Chooser:
    """The points, the baseline among them, and what they are compared by."""

    points: Sequence[Point]
    base: int
    estimate: Estimate
    folds: Sequence[Rows]
    """Of the users, those that the points were measured with."""
    confidence: float = 0.95
    """One-sided, with which a promise is confirmed."""

    @property
    def n_users(self) -> int:
        """Validation users."""
        return len(self.points[self.base].accuracy[self.estimate])

    def accuracies(self) -> Floats:
        """Of all points, (points,)."""
        return np.array([point.accuracy_of(self.estimate) for point in self.points])

    def scores(self, fold: int | None = None) -> Floats:
        """How good each point is for the goal, for the users outside of a fold or for all; higher is better, (points,).

        With several goals, the smallest of their gains over the baseline, each as a share of the largest that any point
        has: a point is as good as what it does least for.
        """
        values = np.array([point.values if fold is None else point.outside[fold] for point in self.points])
        goals = self.points[self.base].goals
        turned = np.array([[goal.score(value) for goal, value in zip(goals, row, strict=True)] for row in values])
        if turned.shape[1] == 1:
            return np.asarray(turned[:, 0])
        with np.errstate(invalid="ignore"):  # a goal without a value is −inf
            gain = turned - turned[self.base]
            shares = gain / np.maximum(gain.max(axis=0), 1e-12)
        return np.asarray(np.where(np.isnan(shares), -np.inf, shares).min(axis=1))

    def frontier(self) -> list[int]:
        """The points that no other beats in both accuracy and goal, the most accurate first."""
        return pareto(self.accuracies(), self.scores())

    def change(self, point: int) -> Change:
        """Accuracy against the baseline."""
        return relative_change(self._values(point), self._values(self.base))

    def _values(self, point: int) -> Floats:
        return self.points[point].accuracy[self.estimate]

    # ------------------------------------------------------------------ within a promise

    def within(self, keep: float) -> tuple[int, Confirmation]:
        """The best point that keeps so much of the baseline's accuracy, as confirmed by users it was not chosen on."""
        folds = self.folds
        fewest = self.n_users - max(map(len, folds))  # that anything is chosen on
        rules = [_Rule.on(self, keep, fewest, fold) for fold in range(len(folds))] if fewest > 1 else []
        last, refused = None, None if rules else CERTAINTIES[0]
        held_out = self._held_out([self.base] * len(folds))
        for certainty in self._certainties(fewest) if rules else ():
            chosen = [rule.choose(certainty) for rule in rules]
            if self.base in chosen:
                refused = certainty if set(chosen) != {self.base} else None
                continue
            values = self._held_out(chosen)
            if self._confirm(values, keep):
                last, held_out, refused = certainty, values, None
                continue
            refused = certainty
            if self.confidence > GUESS:
                break
        point = self.base
        if rules:
            on_all = _Rule.on(self, keep, fewest)
            point = self.base if last is None else on_all.choose(last)
            if last is None and refused is None and on_all.choose(0.0) != self.base:
                refused = self._certainties(fewest)[-1]  # there is something, and nobody was sure of it
        change = relative_change(held_out[:, 0], held_out[:, 1])
        return point, Confirmation(keep, self.confidence, last, change, self.n_users, len(folds), refused)

    def less_sure(self, keep: float, chosen: int) -> tuple[tuple[float, int], ...]:
        """What lower confidences would choose instead, each point once: the highest that does, and the point."""
        highest: dict[int, float] = {chosen: self.confidence}
        for confidence in LESS_SURE:
            if confidence < self.confidence:
                highest.setdefault(replace(self, confidence=confidence).within(keep)[0], confidence)
        return tuple((confidence, point) for point, confidence in highest.items() if point != chosen)

    def _confirm(self, values: Floats, keep: float) -> bool:
        """Whether users, each with what was chosen for it and the baseline, confirm the promise."""
        return bool(crossed_t(values[:, :1], values[:, 1:], keep, 2 * self.confidence - 1)[1] >= 0)

    def _certainties(self, users: int) -> list[float]:
        least = float(stdtrit(users - 1, self.confidence))
        return [*(one for one in CERTAINTIES if one > least), max(least, 0.0)]

    def _held_out(self, chosen: Sequence[int]) -> Floats:
        """Accuracy of what was chosen for each user's fold, and of the baseline.  (users, 2)."""
        values = np.empty((self.n_users, 2))
        values[:, 1] = self._values(self.base)
        for rows, point in zip(self.folds, chosen, strict=True):
            values[rows, 0] = self._values(point)[rows]
        return values

    # ------------------------------------------------------------------ for a target, and without either

    def reaching(self, targets: Sequence[Check]) -> int | None:
        """The most accurate point that meets all targets; None where there is none."""
        meeting = [index for index, point in enumerate(self.points) if all(_meets(point, one) for one in targets)]
        accuracy = self.accuracies()
        return max(meeting, key=lambda index: (accuracy[index], -index), default=None)

    def knee(self) -> int:
        """Where returns diminish: the point of the frontier farthest above the line between its two ends.

        Accuracy and goal each run from 0 to 1 along it.  What does less for the goal than the baseline, or has less
        than half of its accuracy, is no trade-off.
        """
        accuracy, score = self.accuracies(), self.scores()
        allowed = (score >= score[self.base]) & np.isfinite(score) & (accuracy >= 0.5 * accuracy[self.base])
        line = [index for index in self.frontier() if allowed[index]]
        if len(line) < 3:
            return self.base if self.base in line or not line else line[0]
        spans = [np.ptp(values[line]) or 1.0 for values in (accuracy, score)]
        height = (accuracy[line] - accuracy[line].min()) / spans[0] + (score[line] - score[line].min()) / spans[1]
        return line[int(np.argmax(height))]


@dataclass(frozen=True)
class _Rule:
    """Chooses on some users: the points' differences from the promise, their errors and their goals."""

    base: int
    difference: Floats
    error: Floats
    score: Floats

    @classmethod
    def on(cls, chooser: Chooser, keep: float, users: int, fold: int | None = None) -> _Rule:
        """By the users outside of a fold, or by all, at least two; standard errors are those of so many users."""
        everybody = np.arange(chooser.n_users)
        rows = everybody if fold is None else np.setdiff1d(everybody, chooser.folds[fold])
        promised = keep * chooser._values(chooser.base)[rows]
        mean, error = np.empty((2, len(chooser.points)))
        for point in range(
            len(chooser.points)
        ):  # one at a time: all differences at once would be as large as the points
            difference = chooser._values(point)[rows] - promised
            mean[point], error[point] = difference.mean(), difference.std(ddof=1) / np.sqrt(users)
        return cls(chooser.base, mean, error, chooser.scores(fold))

    def choose(self, certainty: float) -> int:
        """The best of those within the promise with this certainty; of equals the most accurate.  Else the baseline."""
        sure = np.flatnonzero(self.difference - certainty * self.error >= 0)
        better = [point for point in sure.tolist() if self.score[point] > self.score[self.base]]
        return max(better, key=lambda point: (self.score[point], self.difference[point]), default=self.base)


def pareto(accuracy: Floats, score: Floats) -> list[int]:
    """Indices that no other beats or equals in both numbers and beats in one, the most accurate first."""
    line: list[int] = []
    for index in np.lexsort((np.arange(len(accuracy)), -score, -accuracy)).tolist():
        if not line or score[index] > score[line[-1]]:
            line.append(index)
    return line


def relative_change(one: Floats, other: Floats) -> Change:
    """`r = mean(one) / mean(other) − 1`; users without a value on either side are left out.

    The interval is that of a ratio of two means over the same users (the delta method): Student's t of
    `one − (1 + r) other`, as a share of the other's mean.
    """
    there = ~(np.isnan(one) | np.isnan(other))
    one, other = one[there], other[there]
    level = float(other.mean()) if len(other) else 0.0
    if len(other) < 2 or level <= 0:
        return Change(float("nan"), float("nan"), float("nan"))
    ratio = float(one.mean()) / level
    _, low, high, _ = crossed_t(one[:, None] / level, other[:, None] / level, ratio, CONFIDENCE)
    return Change(ratio - 1, ratio - 1 + float(low), ratio - 1 + float(high))


def _meets(point: Point, target: Check) -> bool:
    result = target.apply(point.metrics)
    return result.failed and bool(np.isfinite(result.value))  # a check "fails" where its comparison holds


def parse_target(text: str, goals: Sequence[Goal], k: int) -> Check:
    """`coverage>=0.8`: a goal's or a metric's name, with or without its @k."""
    try:
        check = Check.parse(text)
    except InputError:
        raise InputError(
            f'the target {text!r} is not NAME OP NUMBER; write for example --target "coverage>=0.8"'
        ) from None
    known = (*measured_goals(), *goals)
    names = {goal.name: goal.key(k) for goal in known} | {goal.key(k): goal.key(k) for goal in known}
    if check.name not in names:
        raise InputError(f"there is no metric {check.name!r} to aim at; choose one of {', '.join(names)}")
    return Check(names[check.name], check.sign, check.limit)
