"""The result of `dpaa debias`: points, frontier, choice, and what changes for whom, in sentences and for files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpaa._text import finite
from dpaa.debiasing._points import Accuracy, Goal, Point
from dpaa.debiasing.choice import GUESS, Change, Chooser, Confirmation, percent, relative_change
from dpaa.evaluation.offpolicy import ValidationExposure

KIND, FORMAT = "frontier", 1
CLEARLY = 1.5
"""From this factor on a gain is given as one, below as a percentage."""


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
        """What the others are compared with."""
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
        """Indices of the points that no other beats, the most accurate first."""
        return self.chooser.frontier()

    @cached_property
    def changes(self) -> list[Change]:
        """Of each point's accuracy against the baseline's."""
        return [self.chooser.change(index) for index in range(len(self.points))]

    def gain_in_words(self, index: int) -> str:
        """What a point gains for each goal, with an interval where users have values of their own."""
        sentences = []
        point, base = self.points[index], self.base
        for number, goal in enumerate(self.goals):
            before, after = base.values[number], point.values[number]
            of_point, of_base = point.per_user[number], base.per_user[number]
            if of_point is not None and of_base is not None and goal.metric.better != "zero":
                gain = relative_change(of_point, of_base)
            else:
                gain = Change(after / before - 1 if before > 0 else np.nan, np.nan, np.nan)
            factor = f", {after / before:.1f} times as much" if before > 0 and after / before >= 2 else ""
            change = f" {gain.in_words() if np.isfinite(gain.low) else percent(gain.estimate)}{factor}"
            if not np.isfinite(gain.estimate):  # no share of 0, of a number below it, or of none
                change = " from nothing" if before == 0 < after else ""
            sentences.append(f"{goal.name}{change}: {goal.key(self.k)} {before:.4g} → {after:.4g}")
        return "; ".join(sentences)

    def record(self, index: int) -> dict[str, Any]:
        """A point for files."""
        point, change = self.points[index], self.changes[index]
        better, worse = self.better_and_worse(index)
        return {
            **point.candidate.as_json(),
            "plain": point.candidate.plain,
            "on_frontier": index in self.line,
            "accuracy": point.accuracy_of(self.chooser.estimate),
            "accuracy_change": change.estimate,
            "accuracy_change_low": change.low,
            "accuracy_change_high": change.high,
            "users_better": better,
            "users_worse": worse,
            "metrics": point.metrics,
        }

    def better_and_worse(self, index: int) -> tuple[float, float]:
        """Shares of the users whose list is more accurate than the baseline's, and less."""
        estimate = self.chooser.estimate
        difference = self.points[index].accuracy[estimate] - self.base.accuracy[estimate]
        return float((difference > 0).mean()), float((difference < 0).mean())


@dataclass(frozen=True, eq=False)
class Debiased:
    """A frontier and the chosen point."""

    frontier: Frontier
    chosen: int
    why: str
    """How it was chosen, in a sentence."""
    confirmation: Confirmation | None
    """Where a share of the accuracy was promised: what held-out users say."""
    less_sure: tuple[tuple[float, int], ...] = ()
    """What lower confidences would have chosen: the confidence and the point."""
    notes: tuple[str, ...] = ()

    @property
    def point(self) -> Point:
        """The chosen one."""
        return self.frontier.points[self.chosen]

    @property
    def keeps_base(self) -> bool:
        """Whether nothing changes."""
        return self.chosen == self.frontier.chooser.base

    @property
    def accuracy_change(self) -> Change:
        """Of the choice against the baseline; on held-out users where there were some."""
        return self.confirmation.change if self.confirmation else self.frontier.changes[self.chosen]

    def headline(self) -> str:
        """The result for people without time: `niche items found × 3.6, accuracy −0.5 %`."""
        frontier = self.frontier
        if self.keeps_base:
            return f"nothing changes: {frontier.base.candidate.name} stays"
        pairs = zip(frontier.goals, frontier.base.values, self.point.values, strict=True)
        gains = [f"{goal.in_words} {times(before, after)}" for goal, before, after in pairs]
        return ", ".join([*gains, f"accuracy {percent(self.accuracy_change.estimate)}"])

    def sentences(self) -> list[str]:
        """What changes for whom: the goal, the accuracy, the users; and what lower confidences would choose."""
        frontier, base = self.frontier, self.frontier.base.candidate.name
        if self.keeps_base:
            return [f"{base} stays as it is: {self.why}", *self._less_sure_in_words()]
        judges = f" on {self.confirmation.users:,} users who had no part in the choice" if self.confirmation else ""
        better, worse = (f"{100 * share:.0f} %" for share in frontier.better_and_worse(self.chosen))
        sentences = [
            f"{self.point.candidate.name} instead of {base}: {self.why}",
            frontier.gain_in_words(self.chosen),
            f"accuracy (NDCG@{frontier.k}, {frontier.accuracy.estimate}) {self.accuracy_change.in_words()}{judges}; "
            f"{better} of the users get a more accurate list, {worse} a less accurate one",
        ]
        if frontier.cold_users:
            warm = f"ndcg@{frontier.k}/warm-users"
            sentences.append(
                f"{frontier.cold_users:,} of {frontier.chooser.n_users:,} validation users have no training pairs and "
                f"get the most popular items whatever is chosen; NDCG@{frontier.k} of the others "
                f"{frontier.base.metrics[warm]:.4g} → {self.point.metrics[warm]:.4g}"
            )
        return [*sentences, *self._less_sure_in_words()]

    def _less_sure_in_words(self) -> list[str]:
        frontier, sentences = self.frontier, []
        for confidence, index in self.less_sure:
            sure = "as a guess" if confidence <= GUESS else f"at {100 * confidence:.0f} %"
            sentences.append(
                f"{sure} (--confidence {confidence:g}): {frontier.points[index].candidate.name}: "
                f"{frontier.gain_in_words(index)}; accuracy {frontier.changes[index].in_words()}"
            )
        refused = self.confirmation is not None and self.confirmation.refused is not None
        if self.keeps_base and refused and not sentences and frontier.chooser.confidence > GUESS:
            sentences.append(
                "as a guess, too, it is best kept: what looks better to some users did not to those who had no part in "
                "its choice"
            )
        return sentences

    def as_json(self) -> dict[str, Any]:
        """For `frontier.json`, the page and `--json`."""
        frontier, k = self.frontier, self.frontier.k
        goals = [{"name": goal.name, "metric": goal.key(k), "better": goal.metric.better} for goal in frontier.goals]
        content = {
            "kind": KIND,
            "format": FORMAT,
            "dataset": {"name": frontier.dataset, "fingerprint": frontier.fingerprint},
            "k": k,
            "users": frontier.chooser.n_users,
            **({"cold_users": frontier.cold_users} if frontier.cold_users else {}),
            "goals": goals,
            "estimate": frontier.accuracy.as_json(),
            "exposure": frontier.exposure.as_json(),
            "base": frontier.record(frontier.chooser.base),
            "chosen": frontier.record(self.chosen),
            "why": self.why,
            "headline": self.headline(),
            "sentences": self.sentences(),
            "confirmation": None if self.confirmation is None else asdict(self.confirmation),
            "less_sure": [{"confidence": sure, **frontier.record(index)} for sure, index in self.less_sure],
            "points": [frontier.record(index) for index in range(len(frontier.points))],
            "frontier": [frontier.points[index].candidate.name for index in frontier.line],
            "notes": list(self.notes),
        }
        return dict(finite(content))
