"""Which point?  The Pareto frontier, and one point of it: within a promise, for a target, or where returns diminish.

The promise "at least this share of the baseline's accuracy" is kept on users that had no part in the choice
(cross-fitting).  A rule asks for a certainty z: of the points whose accuracy, minus z standard errors, is within the
promise, take the one that is best for the goal.  The users are cut into folds; for each fold the rule chooses on the
others, and the fold's own users say what its choice is worth.  From the strictest rule (the baseline itself) on, rules
are relaxed step by step, as long as those users confirm the promise at 95 %, one-sided; the first that is not confirmed
ends it, so that trying several rules costs no certainty (fixed-sequence testing).  The last rule that was confirmed
then chooses on all users.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaa.auditing.checks import Check
from dpaa.comparison.statistics import crossed_t
from dpaa.errors import InputError
from dpaa.frontier.estimates import Estimate
from dpaa.frontier.goals import Goal
from dpaa.frontier.points import Point, Rows, measured_goals

Floats = NDArray[np.float64]
FOLDS = 5
CERTAINTIES = (5.0, 4.0, 3.5, 3.0, 2.75, 2.5, 2.25, 2.0, 1.75, 1.5, 1.25, 1.0, 0.75, 0.5, 0.25, 0.0)
"""Standard errors that rules ask for, the strictest first."""
CONFIDENCE = 0.95
"""Of the intervals that are shown."""


@dataclass(frozen=True)
class Change:
    """A relative change with its 95 % interval over users (Student's t of paired differences); NaN without a value."""

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
    """What users without a part in the choice say of it."""

    keep: float
    """Promised share of the baseline's accuracy."""
    confidence: float
    """One-sided, with which they had to confirm it."""
    certainty: float | None
    """Standard errors that the rule in force asks for; None: the baseline alone."""
    change: Change
    """Of accuracy against the baseline, on users that had no part in choosing."""
    users: int
    folds: int
    refused: float | None
    """The first certainty that those users did not confirm; None where all were."""

    def as_json(self) -> dict[str, Any]:
        """For files."""
        return asdict(self)


@dataclass(frozen=True)
class Chooser:
    """The points, the baseline among them, and what they are compared by."""

    points: Sequence[Point]
    base: int
    estimate: Estimate
    confidence: float = 0.95
    """One-sided, with which a promise is confirmed."""
    seed: int = 0

    @property
    def n_users(self) -> int:
        """Validation users."""
        return len(self.points[self.base].accuracy[self.estimate])

    def accuracies(self, rows: Rows | None = None) -> Floats:
        """Of all points, (points,)."""
        return np.array([point.accuracy_of(self.estimate, rows) for point in self.points])

    def scores(self, rows: Rows | None = None) -> Floats:
        """How good each point is for the goal, higher is better, (points,).

        With several goals, the smallest of their gains over the baseline, each as a share of the largest that any point
        has: a point is as good as what it does least for.
        """
        values = np.array([point.values if rows is None else point.values_on(rows) for point in self.points])
        goals = self.points[self.base].goals
        turned = np.array([[goal.score(value) for goal, value in zip(goals, row, strict=True)] for row in values])
        if turned.shape[1] == 1:
            return np.asarray(turned[:, 0])
        gain = turned - turned[self.base]
        with np.errstate(invalid="ignore"):
            largest = np.maximum(gain.max(axis=0), 1e-12)
        return np.asarray(np.nan_to_num(gain / largest, nan=-np.inf).min(axis=1))

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
        folds = self._folds()
        outside = [np.setdiff1d(np.arange(self.n_users), rows) for rows in folds]
        rules = [_Rule.on(self, keep, rows) for rows in outside]
        last, found = None, self._held_out(folds, [self.base] * len(folds))
        refused = None
        for certainty in CERTAINTIES:
            chosen = [rule.choose(certainty) for rule in rules]
            values = self._held_out(folds, chosen)
            low = crossed_t(values[:, :1], values[:, 1:], keep, 2 * self.confidence - 1)[1]
            if not low >= 0:
                refused = certainty
                break
            last, found = certainty, values
        point = self.base if last is None else _Rule.on(self, keep, np.arange(self.n_users)).choose(last)
        change = relative_change(found[:, 0], found[:, 1])
        return point, Confirmation(keep, self.confidence, last, change, self.n_users, len(folds), refused)

    def _folds(self) -> list[Rows]:
        order = np.random.default_rng([self.seed, 17]).permutation(self.n_users)
        return [np.sort(part) for part in np.array_split(order, min(FOLDS, self.n_users))]

    def _held_out(self, folds: Sequence[Rows], chosen: Sequence[int]) -> Floats:
        """Accuracy of what was chosen for each user's fold, and of the baseline.  (users, 2)."""
        values = np.empty((self.n_users, 2))
        values[:, 1] = self._values(self.base)
        for rows, point in zip(folds, chosen, strict=True):
            values[rows, 0] = self._values(point)[rows]
        return values

    # ------------------------------------------------------------------ for a target, and without a wish

    def reaching(self, targets: Sequence[Check]) -> int | None:
        """The most accurate point that meets all targets; None where there is none."""
        meeting = [place for place, point in enumerate(self.points) if all(_meets(point, one) for one in targets)]
        accuracy = self.accuracies()
        return max(meeting, key=lambda place: (accuracy[place], -place), default=None)

    def knee(self) -> int:
        """Where returns diminish: the point of the frontier farthest above the line between its two ends.

        Accuracy and goal each run from 0 to 1 along the frontier.  The end with the most accuracy is never below the
        baseline's, and what is below half of it is no trade.
        """
        accuracy, score = self.accuracies(), self.scores()
        line = [place for place in self.frontier() if accuracy[place] >= 0.5 * accuracy[self.base]]
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
    def on(cls, chooser: Chooser, keep: float, rows: Rows) -> _Rule:
        promised = keep * chooser._values(chooser.base)[rows]
        differences = np.stack([chooser._values(place)[rows] - promised for place in range(len(chooser.points))])
        error = (
            differences.std(axis=1, ddof=1) / np.sqrt(len(rows)) if len(rows) > 1 else np.full(len(differences), np.inf)
        )
        return cls(chooser.base, differences.mean(axis=1), error, chooser.scores(rows))

    def choose(self, certainty: float) -> int:
        """The best of those within the promise with this certainty; of equals the most accurate.  Else the baseline."""
        sure = np.flatnonzero(self.difference - certainty * self.error >= 0)
        better = [place for place in sure.tolist() if self.score[place] > self.score[self.base]]
        return max(better, key=lambda place: (self.score[place], self.difference[place]), default=self.base)


def pareto(accuracy: Floats, score: Floats) -> list[int]:
    """Places that no other beats or equals in both numbers and beats in one, the most accurate first."""
    found: list[int] = []
    best = -np.inf
    for place in np.lexsort((np.arange(len(accuracy)), -score, -accuracy)).tolist():
        if score[place] > best:
            found.append(place)
            best = float(score[place])
    return found


def relative_change(one: Floats, other: Floats) -> Change:
    """The mean of one minus that of the other, as a share of it; users without a value on either side are left out."""
    there = ~(np.isnan(one) | np.isnan(other))
    one, other = one[there], other[there]
    level = float(other.mean()) if len(other) else 0.0
    if len(other) < 2 or level <= 0:
        return Change(float("nan"), float("nan"), float("nan"))
    found = crossed_t(one[:, None] / level, other[:, None] / level, confidence=CONFIDENCE)
    return Change(*(float(value) for value in found[:3]))


def _meets(point: Point, target: Check) -> bool:
    return target.apply(point.metrics).failed  # a check "fails" where its comparison holds


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
