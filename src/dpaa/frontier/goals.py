"""What lists shall gain for the accuracy that they give up: a metric of the table, by a name that users type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpaa.errors import InputError
from dpaa.evaluation.bias import mean_of_known
from dpaa.evaluation.context import Context, Floats
from dpaa.evaluation.metrics import METRICS, Metric

NICHE = "/niche"
ALIASES = {"niche-recall": f"recall{NICHE}", "calibration": "upd"}
"""What users type → metric and item group."""
HEADLINES = {
    "recall/niche": "niche items found",
    "coverage": "items shown",
    "arp": "mean popularity",
    "gini": "inequality of exposure",
    "upd": "distance from users' own mix",
}
"""Metric → what a person without time reads."""
OFFERED = ("niche-recall", "coverage", "arp", "gini", "calibration")


@dataclass(frozen=True)
class Goal:
    """One metric, perhaps counted on niche items only."""

    name: str
    metric: Metric
    niche: bool

    @classmethod
    def parse(cls, text: str) -> Goal:
        """By alias (`niche-recall`) or as the table names it (`aplt`, `recall/niche`)."""
        wanted = text.strip().lower()
        name = ALIASES.get(wanted, wanted)
        niche = name.endswith(NICHE)
        found = METRICS.get(name.removesuffix(NICHE))
        if found is None or niche != (found.kind == "accuracy"):
            others = [one.name for one in METRICS.values() if one.kind != "accuracy" and one.name not in OFFERED]
            raise InputError(
                f"there is no goal {text!r}; choose one of {', '.join(OFFERED)}, or another metric of popularity or "
                f"spread: {', '.join(others)}"
            )
        return cls(wanted, found, niche)

    def key(self, k: int) -> str:
        """As `evaluate` names it."""
        return f"{self.metric.name}@{k}{NICHE if self.niche else ''}"

    @property
    def in_words(self) -> str:
        """Short, for people who do not know the metric's name."""
        return HEADLINES.get(f"{self.metric.name}{NICHE if self.niche else ''}", self.name)

    @property
    def words(self) -> str:
        """What it says."""
        return f"{self.metric.words}{', counted on niche items only' if self.niche else ''}"

    def per_user(self, at: Context) -> Floats | None:
        """(users,), NaN for a user without a value; None where it is a property of all lists together."""
        if not self.metric.per_user:
            return None
        part = at.of_items(~at.truth.popular) if self.niche else at
        values = np.full(len(at.lists), np.nan)
        found = self.metric.formula(part)
        if found is None:
            raise InputError(f"the goal {self.name} needs the users' histories, which this dataset does not have")
        values[part.rows] = found
        return values

    def of_all(self, at: Context) -> float:
        """One number for all lists."""
        each = self.per_user(at)
        return float(self.metric.formula(at)) if each is None else mean_of_known(each)

    def score(self, value: float) -> float:
        """Higher is better, whatever direction the metric has; −inf where there is no value."""
        turned = {"high": value, "low": -value, "zero": -abs(value)}[self.metric.better]
        return turned if np.isfinite(turned) else -np.inf


def parse_goals(texts: Sequence[str]) -> tuple[Goal, ...]:
    """Each once, at least one."""
    goals = tuple(Goal.parse(text) for text in texts)
    if not goals:
        raise InputError(f"name at least one goal: {', '.join(OFFERED)}")
    keys = [goal.key(1) for goal in goals]
    if len(set(keys)) < len(keys):
        raise InputError("a goal is named twice; name each once")
    return goals
