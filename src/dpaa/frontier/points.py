"""Every model with every re-ranker, measured on the same validation users."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaa.evaluation.context import Context
from dpaa.evaluation.evaluator import Evaluator
from dpaa.evaluation.metrics import METRICS
from dpaa.frontier.estimates import ESTIMATES, Accuracy, Estimate
from dpaa.frontier.goals import Goal
from dpaa.methods.base import Method
from dpaa.reranking.base import Dial, Reranker
from dpaa.reranking.dial import dialled_family

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
MOST_USERS = 20_000
"""Validation users that points are measured on; of more, so many are taken, evenly spread."""
SHOWN = ("ndcg", "recall", "arp", "aplt", "coverage", "gini", "upd")
"""Metrics told of every point, whatever the goal; and the recall of niche items."""


def measured_goals() -> list[Goal]:
    """The same as goals."""
    return [*(Goal(name, METRICS[name], niche=False) for name in SHOWN), Goal.parse("niche-recall")]


@dataclass(frozen=True)
class Candidate:
    """A model and how its lists are made from its scores."""

    model: str
    """Its name in the frontier."""
    reranker: Reranker | None = None
    """None: the k highest scores."""
    kappa: float = 0.0
    """Of the popularity dial over the model's scores, before the re-ranker."""

    @property
    def plain(self) -> bool:
        """Whether nothing is done to the model's own ranking."""
        return self.reranker is None and self.kappa == 0

    @property
    def name(self) -> str:
        """`ease`, `ease, dial -0.5`, `ease, xquad 0.3`, `auto, dial 0.25, xquad 0.3`."""
        dial = [f"dial {self.kappa:g}"] if self.kappa else []
        return ", ".join([self.model, *dial, *([] if self.reranker is None else [self._in_words(self.reranker)])])

    @staticmethod
    def _in_words(reranker: Reranker) -> str:
        changed = reranker.model_dump(mode="json", exclude_defaults=True)
        strength = changed.pop("strength", getattr(reranker, "strength", None))
        shown = "" if strength is None else f" {strength:g}"
        return f"{reranker.name}{shown}" + "".join(f", {name} {value}" for name, value in changed.items())

    def as_json(self) -> dict[str, Any]:
        """For files."""
        rerank = None if self.reranker is None else self.reranker.as_json()
        return {"name": self.name, "model": self.model, "popularity_dial": self.kappa, "rerank": rerank}


@dataclass(frozen=True, eq=False)
class Point:
    """What a candidate's lists are worth, on the validation users."""

    candidate: Candidate
    at: Context = field(repr=False)
    accuracy: Mapping[Estimate, Floats] = field(repr=False)
    """What each user adds to the accuracy, (users,), by estimate."""
    goals: tuple[Goal, ...] = field(repr=False)

    def accuracy_of(self, estimate: Estimate, rows: Rows | None = None) -> float:
        """The mean over users, or over some of them."""
        values = self.accuracy[estimate]
        return float((values if rows is None else values[rows]).mean())

    @cached_property
    def per_user(self) -> list[Floats | None]:
        """Each goal's value of each user; None for goals that all lists have together."""
        return [goal.per_user(self.at) for goal in self.goals]

    @cached_property
    def values(self) -> tuple[float, ...]:
        """Each goal's value over all users."""
        return tuple(goal.of_all(self.at) for goal in self.goals)

    def values_on(self, rows: Rows) -> tuple[float, ...]:
        """The same over some users."""
        found = []
        for goal, each in zip(self.goals, self.per_user, strict=True):
            if each is not None:
                there = each[rows][~np.isnan(each[rows])]
                found.append(float(there.mean()) if len(there) else float("nan"))
            else:
                at = self.at
                found.append(goal.of_all(Context(at.truth, at.lists[rows], at.hits[rows], at.relevant[rows], rows)))
        return tuple(found)

    @cached_property
    def metrics(self) -> dict[str, float]:
        """By the names of `evaluate`: plain NDCG and recall, niche recall, popularity and spread."""
        k = self.at.lists.shape[1]
        return {goal.key(k): goal.of_all(self.at) for goal in (*measured_goals(), *self.goals)}


@dataclass(frozen=True, eq=False)
class Measurer:
    """The validation users, and how points are measured on them."""

    evaluator: Evaluator
    goals: tuple[Goal, ...]
    power: float
    floor: float

    @cached_property
    def accuracies(self) -> dict[Estimate, Accuracy]:
        """The estimates, made ready once."""
        truth, k = self.evaluator.truth, self.evaluator.protocol.k[-1]
        return {name: Accuracy(truth, k, name, self.power, self.floor) for name in ESTIMATES}

    def points(self, model: str, method: Method, rerankers: Sequence[Reranker]) -> Iterator[Point]:
        """The model itself, then each re-ranker: one pass over the scores for the dial, one for all others."""
        kappas = [0.0, *(one.kappa for one in rerankers if isinstance(one, Dial) and one.kappa)]
        lists = self.evaluator.lists_of(dialled_family(method, kappas), len(kappas))
        for kappa, found in zip(kappas, lists, strict=True):
            yield self.point(Candidate(model, None, kappa), found)
        others = [one for one in rerankers if not isinstance(one, Dial)]
        if others:
            for one, found in zip(others, self.evaluator.lists_reranked(method, others), strict=True):
                yield self.point(Candidate(model, one), found)

    def as_run(self, model: str, method: Method, kappa: float, reranker: Reranker | None) -> Point:
        """A run as it stands, with the dial and the re-ranker that it keeps."""
        return self.point(Candidate(model, reranker, kappa), self.evaluator.lists(method, kappa, reranker))

    def point(self, candidate: Candidate, lists: NDArray[Any]) -> Point:
        """Measure lists, (users, k)."""
        at = self.evaluator.truth.context(lists.astype(np.int32))
        return Point(candidate, at, {name: one.of(at) for name, one in self.accuracies.items()}, self.goals)
