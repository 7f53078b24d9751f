"""Every model with every re-ranker, measured on the same validation users."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaa.evaluation.bias import mean_of_known
from dpaa.evaluation.context import Context
from dpaa.evaluation.evaluator import Evaluator
from dpaa.evaluation.metrics import METRICS
from dpaa.frontier.estimates import Accuracy, Estimate
from dpaa.frontier.goals import Goal
from dpaa.methods.base import Method
from dpaa.ranking.dial import dialled_family
from dpaa.ranking.reranker import Dial, Reranker

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
FOLDS = 5
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


def user_folds(n_users: int, seed: int) -> tuple[Rows, ...]:
    """The users cut into folds at random: `choice` never lets users judge what they chose."""
    order = np.random.default_rng([seed, 17]).permutation(n_users)
    return tuple(np.sort(part) for part in np.array_split(order, min(FOLDS, n_users)))


@dataclass(frozen=True, eq=False)
class Point:
    """What a candidate's lists are worth, on the validation users; the lists themselves are not kept."""

    candidate: Candidate
    accuracy: Mapping[Estimate, Floats] = field(repr=False)
    """What each user adds to the accuracy, (users,), by estimate."""
    goals: tuple[Goal, ...] = field(repr=False)
    per_user: tuple[Floats | None, ...] = field(repr=False)
    """Each goal's value of each user; None for goals that all lists have together."""
    values: tuple[float, ...] = field(repr=False)
    """Each goal's value over all users."""
    outside: tuple[tuple[float, ...], ...] = field(repr=False)
    """The same over the users outside of each fold."""
    metrics: Mapping[str, float] = field(repr=False)
    """By the names of `evaluate`: plain NDCG and recall, niche recall, popularity and spread."""

    def accuracy_of(self, estimate: Estimate) -> float:
        """The mean over users."""
        return float(self.accuracy[estimate].mean())


def measure(
    candidate: Candidate,
    at: Context,
    accuracy: Mapping[Estimate, Floats],
    goals: tuple[Goal, ...],
    folds: Sequence[Rows],
) -> Point:
    """A point from a candidate's lists."""
    each = tuple(goal.per_user(at) for goal in goals)
    values = tuple(
        goal.of_all(at) if known is None else mean_of_known(known) for goal, known in zip(goals, each, strict=True)
    )
    everybody = np.arange(len(at.lists))
    outside = tuple(_of_some(goals, each, at, np.setdiff1d(everybody, fold)) for fold in folds)
    k = at.lists.shape[1]
    told = {goal.key(k): goal.of_all(at) for goal in (*measured_goals(), *goals)}
    if at.truth.taste is not None and (cold := at.truth.taste < 0).any():
        ndcg = METRICS["ndcg"].formula(at)
        for group, rows in (("warm-users", ~cold), ("cold-users", cold)):
            told[f"ndcg@{k}/{group}"] = mean_of_known(ndcg[rows])
    return Point(candidate, accuracy, goals, each, values, outside, told)


def _of_some(goals: Sequence[Goal], each: Sequence[Floats | None], at: Context, rows: Rows) -> tuple[float, ...]:
    """Each goal's value over some users; NaN over nobody."""
    if not len(rows):
        return (float("nan"),) * len(goals)
    found = []
    for goal, known in zip(goals, each, strict=True):
        if known is not None:
            found.append(mean_of_known(known[rows]))
        else:
            found.append(goal.of_all(Context(at.truth, at.lists[rows], at.hits[rows], at.relevant[rows], rows)))
    return tuple(found)


@dataclass(frozen=True, eq=False)
class Measurer:
    """The validation users, and how points are measured on them."""

    evaluator: Evaluator
    goals: tuple[Goal, ...]
    accuracies: Mapping[Estimate, Accuracy]
    """The estimates that points are measured by."""
    seed: int = 0
    """Of the folds."""

    @cached_property
    def folds(self) -> tuple[Rows, ...]:
        """Rows of the users."""
        return user_folds(len(self.evaluator.users), self.seed)

    def points(self, model: str, method: Method, rerankers: Sequence[Reranker]) -> Iterator[Point]:
        """The model itself, then each re-ranker."""
        for candidate, lists in self.lists(model, method, rerankers):
            yield self.point(candidate, lists)

    def lists(
        self, model: str, method: Method, rerankers: Sequence[Reranker]
    ) -> Iterator[tuple[Candidate, NDArray[Any]]]:
        """Of the same: one pass over the scores for the dial, one for all others.  (users, k) each."""
        kappas = [0.0, *(one.kappa for one in rerankers if isinstance(one, Dial) and one.kappa)]
        found = self.evaluator.lists_of(dialled_family(method, kappas), len(kappas), method.graph.device)
        yield from ((Candidate(model, None, kappa), one) for kappa, one in zip(kappas, found, strict=True))
        others = [one for one in rerankers if not isinstance(one, Dial)]
        if others:
            found = self.evaluator.lists_reranked(method, others)
            yield from ((Candidate(model, other), one) for other, one in zip(others, found, strict=True))

    def as_run(self, model: str, method: Method, kappa: float, reranker: Reranker | None) -> Point:
        """A run as it stands, with the dial and the re-ranker that it keeps."""
        return self.point(Candidate(model, reranker, kappa), self.evaluator.lists(method, kappa, reranker))

    def point(self, candidate: Candidate, lists: NDArray[Any]) -> Point:
        """Measure lists, (users, k)."""
        at = self.evaluator.truth.context(lists.astype(np.int32))
        accuracy = {name: one.of(at) for name, one in self.accuracies.items()}
        return measure(candidate, at, accuracy, self.goals, self.folds)
