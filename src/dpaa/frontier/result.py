"""What `dpaa debias` found: points, frontier, choice, and what changes for whom, in sentences and for files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpaa.evaluation.offpolicy import ValidationExposure
from dpaa.frontier.choice import GUESS, Change, Chooser, Confirmation, percent, relative_change
from dpaa.frontier.estimates import Accuracy
from dpaa.frontier.goals import Goal
from dpaa.frontier.points import Point
from dpaa.text import finite

KIND, FORMAT = "frontier", 1
CLEARLY = 1.5
"""From this factor on a gain is told as one, below as a percentage."""


def times(before: float, after: float) -> str:
    """`× 3.6`, or `+12 %` where it is less than half as much again; the values where there is no share of the first."""
    if not before > 0:
        return f"{before:.4g} → {after:.4g}"
    return f"× {after / before:.1f}" if after / before >= CLEARLY else percent(after / before - 1)


@dataclass(frozen=True, eq=False)
class Frontier:
    """All points, measured on one dataset's validation users."""

    dataset: str
    fingerprint: str
    accuracy: Accuracy
    exposure: ValidationExposure
    chooser: Chooser
    cold_users: int = 0
    """Of the validation users, those without training pairs."""

    @property
    def points(self) -> Sequence[Point]:
        """Every model with every re-ranker."""
        return self.chooser.points

    @property
    def base(self) -> Point:
        """What the others are measured against."""
        return self.points[self.chooser.base]

    @property
    def goals(self) -> tuple[Goal, ...]:
        """What lists shall gain."""
        return self.base.goals

    @property
    def k(self) -> int:
        """Length of the lists."""
        return self.accuracy.k

    @cached_property
    def line(self) -> list[int]:
        """Places of the points that no other beats, the most accurate first."""
        return self.chooser.frontier()

    @cached_property
    def changes(self) -> list[Change]:
        """Of each point's accuracy against the baseline's."""
        return [self.chooser.change(place) for place in range(len(self.points))]

    def gain(self, place: int, goal: int = 0) -> Change:
        """Relative change of a goal's value; with an interval where users have values of their own."""
        point, one = self.points[place], self.goals[goal]
        each, of_base = point.per_user[goal], self.base.per_user[goal]
        if each is not None and of_base is not None and one.metric.better != "zero":
            return relative_change(each, of_base)
        before, after = self.base.values[goal], point.values[goal]
        nothing = float("nan")
        return Change(after / before - 1 if before > 0 else nothing, nothing, nothing)

    def record(self, place: int) -> dict[str, Any]:
        """A point for files."""
        point, change = self.points[place], self.changes[place]
        better, worse = self.better_and_worse(place)
        return {
            **point.candidate.as_json(),
            "plain": point.candidate.plain,
            "on_frontier": place in self.line,
            "accuracy": point.accuracy_of(self.chooser.estimate),
            "accuracy_change": change.estimate,
            "accuracy_change_low": change.low,
            "accuracy_change_high": change.high,
            "users_better": better,
            "users_worse": worse,
            "metrics": point.metrics,
        }

    def better_and_worse(self, place: int) -> tuple[float, float]:
        """Shares of the users whose list is more accurate than the baseline's, and less."""
        estimate = self.chooser.estimate
        difference = self.points[place].accuracy[estimate] - self.base.accuracy[estimate]
        return float((difference > 0).mean()), float((difference < 0).mean())


@dataclass(frozen=True, eq=False)
class Debiased:
    """A frontier and the point that was chosen."""

    frontier: Frontier
    chosen: int
    why: str
    """How it was chosen, in a sentence."""
    confirmation: Confirmation | None
    """Where a share of the accuracy was promised: what users say who had no part in the choice."""
    less_sure: tuple[tuple[float, int], ...] = ()
    """What lower confidences would have chosen: the confidence and the point."""
    notes: tuple[str, ...] = ()

    @property
    def point(self) -> Point:
        """The one that was chosen."""
        return self.frontier.points[self.chosen]

    @property
    def keeps_base(self) -> bool:
        """Whether nothing changes."""
        return self.chosen == self.frontier.chooser.base

    def headline(self) -> str:
        """What it comes to, for people without time: `niche items found × 3.6, accuracy −0.5 %`."""
        if self.keeps_base:
            return f"nothing changes: {self.frontier.base.candidate.name} stays"
        found = self.frontier
        pairs = zip(found.goals, found.base.values, self.point.values, strict=True)
        gains = [f"{goal.in_words} {times(before, after)}" for goal, before, after in pairs]
        return ", ".join([*gains, f"accuracy {percent(self.accuracy_change.estimate)}"])

    @property
    def accuracy_change(self) -> Change:
        """Of the choice against the baseline; as users say who had no part in the choice, where some were asked."""
        return self.confirmation.change if self.confirmation else self.frontier.changes[self.chosen]

    def sentences(self) -> list[str]:
        """What changes for whom: the goal, the accuracy, the users."""
        found, base = self.frontier, self.frontier.base.candidate.name
        if self.keeps_base:
            return [f"{base} stays as it is: {self.why}", *self._less_sure_in_words()]
        told = [f"{self.point.candidate.name} instead of {base}: {self.why}", self._gains_in_words(self.chosen)]
        change = self.accuracy_change
        judges = f" on {self.confirmation.users:,} users who had no part in the choice" if self.confirmation else ""
        better, worse = (f"{100 * share:.0f} %" for share in found.better_and_worse(self.chosen))
        told.append(
            f"accuracy (NDCG@{found.k}, {found.accuracy.estimate}) {change.in_words()}{judges}; {better} of the users "
            f"get a more accurate list, {worse} a less accurate one"
        )
        if found.cold_users:
            warm = f"ndcg@{found.k}/warm-users"
            told.append(
                f"{found.cold_users:,} of {found.chooser.n_users:,} validation users have no training pairs and get "
                f"the most popular items whatever is chosen; NDCG@{found.k} of the others "
                f"{found.base.metrics[warm]:.4g} → {self.point.metrics[warm]:.4g}"
            )
        return [*told, *self._less_sure_in_words()]

    def _less_sure_in_words(self) -> list[str]:
        """What could be had for less confidence, and how."""
        told = []
        for confidence, place in self.less_sure:
            name, change = self.frontier.points[place].candidate.name, self.frontier.changes[place]
            sure = "as a guess" if confidence <= GUESS else f"at {100 * confidence:.0f} %"
            told.append(
                f"{sure} (--confidence {confidence:g}): {name}: {self._gains_in_words(place)}; "
                f"accuracy {change.in_words()}"
            )
        refused = self.confirmation is not None and self.confirmation.refused is not None
        if self.keeps_base and refused and not told and self.frontier.chooser.confidence > GUESS:
            told.append(
                "as a guess, too, it is best kept: what looks better to some users did not to those who had no part in "
                "its choice"
            )
        return told

    def _gains_in_words(self, place: int) -> str:
        return "; ".join(self._gain_in_words(place, goal) for goal in range(len(self.frontier.goals)))

    def _gain_in_words(self, place: int, goal: int) -> str:
        found = self.frontier
        one, before, after = found.goals[goal], found.base.values[goal], found.points[place].values[goal]
        gain = found.gain(place, goal)
        times = f", {after / before:.1f} times as much" if before > 0 and after / before >= 2 else ""
        told = f" {gain.in_words() if np.isfinite(gain.low) else percent(gain.estimate)}{times}"
        if not np.isfinite(gain.estimate):  # no share of 0, of a number below it, or of none
            told = " from nothing" if before == 0 < after else ""
        return f"{one.name}{told}: {one.key(found.k)} {before:.4g} → {after:.4g}"

    def as_json(self) -> dict[str, Any]:
        """For `frontier.json`, the page and `--json`."""
        found = self.frontier
        content = {
            "kind": KIND,
            "format": FORMAT,
            "dataset": {"name": found.dataset, "fingerprint": found.fingerprint},
            "k": found.k,
            "users": found.chooser.n_users,
            **({"cold_users": found.cold_users} if found.cold_users else {}),
            "goals": [
                {"name": goal.name, "metric": goal.key(found.k), "better": goal.metric.better} for goal in found.goals
            ],
            "estimate": found.accuracy.as_json(),
            "exposure": found.exposure.as_json(),
            "base": found.record(found.chooser.base),
            "chosen": found.record(self.chosen),
            "why": self.why,
            "headline": self.headline(),
            "sentences": self.sentences(),
            "confirmation": None if self.confirmation is None else asdict(self.confirmation),
            "less_sure": [{"confidence": sure, **found.record(place)} for sure, place in self.less_sure],
            "points": [found.record(place) for place in range(len(found.points))],
            "frontier": [found.points[place].candidate.name for place in found.line],
            "notes": list(self.notes),
        }
        return dict(finite(content))
