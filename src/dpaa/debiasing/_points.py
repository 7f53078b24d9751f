"""Every model with every re-ranker, measured on the same validation users: its accuracy and its goals.

Validation pairs may be as biased as the log, so there are three estimates of accuracy.  Each weighs the relevant pairs
by their item, `w_i`, and is an NDCG that a pair enters by its weight:

    accuracy = Σ_u W_u ndcg_u / Σ_u W_u,    ndcg_u = Σ_hits w_i/log2(rank + 1) / (the same of the best list)

with `W_u` the mean weight of the user's relevant pairs.  With equal weights it is the usual NDCG, a mean over users.

| estimate | w_i | asks |
|---|---|---|
| `logged` | 1 | how well do lists find what the log holds? |
| `ips` | 1 / max(floor, (count_i / largest count)^power) | how well, were all items met equally often? |
| `balanced` | 1 / validation pairs of the item | how well, counting every item alike? |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dpaa.errors import InputError
from dpaa.evaluation.bias import mean_of_known
from dpaa.evaluation.context import Context, GroundTruth
from dpaa.evaluation.evaluator import Evaluator
from dpaa.evaluation.metrics import METRICS, Metric
from dpaa.evaluation.offpolicy import FLOOR, POWER, ValidationExposure, best_gain, propensities
from dpaa.methods.base import Method
from dpaa.ranking.dial import dialled_family
from dpaa.ranking.reranker import Dial, Reranker

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

# ---------------------------------------------------------------------- accuracy

Estimate = Literal["logged", "ips", "balanced"]
ESTIMATES: tuple[Estimate, ...] = get_args(Estimate)
ON_BIASED: Estimate = "ips"
"""What is used where validation comes from the log's own exposure; docs/debias.md has the measurements behind it."""
WORDS: dict[Estimate, str] = {
    "logged": "accuracy as logged: every validation pair counts alike",
    "ips": "accuracy by inverse propensity: a validation pair counts more, the less often its item was met in training",
    "balanced": "popularity-balanced accuracy: every item counts alike, however many validation pairs it has",
}
FEW = 100.0
"""Pairs of equal weight below which an estimate is mostly noise."""


def default_estimate(exposure: ValidationExposure) -> Estimate:
    """As logged where validation pairs were met without bias, else `ON_BIASED`."""
    return ON_BIASED if exposure.biased else "logged"


@dataclass(frozen=True, eq=False)
class Accuracy:
    """One estimate for the users of a ground truth, prepared once for any lists."""

    truth: GroundTruth
    k: int
    estimate: Estimate = "logged"
    power: float = POWER
    floor: float = FLOOR

    @cached_property
    def weight(self) -> Floats:
        """`w_i`, (n_items,)."""
        if self.estimate == "logged":
            return np.ones(self.truth.n_items)
        if self.estimate == "ips":
            return 1.0 / propensities(self.truth.counts, self.power, self.floor)[0]
        return 1.0 / np.maximum(np.bincount(self.truth.relevant_pairs[1], minlength=self.truth.n_items), 1.0)

    @cached_property
    def _best(self) -> Floats:
        """What the best list of k gains, (users,)."""
        row, item = self.truth.relevant_pairs
        return best_gain(row, self.weight[item], self._discount, len(self.truth.users))

    @cached_property
    def _discount(self) -> Floats:
        return np.asarray(1.0 / np.log2(np.arange(self.k) + 2.0))

    @cached_property
    def share(self) -> Floats:
        """How much each user counts, (users,), 1 on average."""
        row, item = self.truth.relevant_pairs
        pairs = np.bincount(row, minlength=len(self.truth.users))
        mean = np.bincount(row, self.weight[item], minlength=len(self.truth.users)) / np.maximum(pairs, 1)
        return np.asarray(mean / mean.mean())

    def of(self, at: Context) -> Floats:
        """What each user adds, (users,); their mean is the estimate."""
        gained = np.where(at.hits, self.weight[at.lists], 0.0) @ self._discount[: at.lists.shape[1]]
        return np.asarray(self.share * gained / self._best)

    @property
    def effective_sample_size(self) -> float:
        """`(Σ w)² / Σ w²` over the relevant pairs: as many pairs of equal weight would be as noisy."""
        weights = self.weight[self.truth.relevant_pairs[1]]
        return float(weights.sum() ** 2 / (weights**2).sum())

    def notes(self) -> list[str]:
        """What to know before believing it."""
        size, pairs = self.effective_sample_size, len(self.truth.relevant)
        if size >= FEW:
            return []
        return [
            f"the accuracy rests on an effective {size:,.0f} of {pairs:,} validation pairs, and is mostly noise below "
            f"{FEW:g}; make a dataset with more of them"
        ]

    def as_json(self) -> dict[str, Any]:
        """How it came about."""
        about: dict[str, Any] = {"name": self.estimate, "in_words": WORDS[self.estimate]}
        if self.estimate == "ips":
            about |= {"power": self.power, "floor": self.floor}
        return about | {"pairs": len(self.truth.relevant), "effective_sample_size": self.effective_sample_size}


# ---------------------------------------------------------------------- goals

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
        metric = METRICS.get(name.removesuffix(NICHE))
        if metric is None or niche != (metric.kind == "accuracy"):
            others = [one.name for one in METRICS.values() if one.kind != "accuracy" and one.name not in OFFERED]
            raise InputError(
                f"there is no goal {text!r}; choose one of {', '.join(OFFERED)}, or another metric of popularity or "
                f"spread: {', '.join(others)}"
            )
        return cls(wanted, metric, niche)

    def key(self, k: int) -> str:
        """As `evaluate` names it."""
        return f"{self.metric.name}@{k}{NICHE if self.niche else ''}"

    @property
    def in_words(self) -> str:
        """Short, for people who do not know the metric's name."""
        return HEADLINES.get(f"{self.metric.name}{NICHE if self.niche else ''}", self.name)

    def per_user(self, at: Context) -> Floats | None:
        """(users,), NaN for a user without a value; None where it is a property of all lists together."""
        if not self.metric.per_user:
            return None
        part = at.of_items(~at.truth.popular) if self.niche else at
        values = np.full(len(at.lists), np.nan)
        values[part.rows] = self.metric.formula(part)
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


# ---------------------------------------------------------------------- points

FOLDS = 5
MOST_USERS = 20_000
"""Validation users that points are measured on; of more, so many are taken, evenly spread."""
MEASURED = ("ndcg", "recall", "arp", "aplt", "coverage", "gini", "upd")
"""Metrics of every point, whatever the goal; and the recall of niche items."""


def measured_goals() -> list[Goal]:
    """`MEASURED` as goals."""
    return [*(Goal(name, METRICS[name], niche=False) for name in MEASURED), Goal.parse("niche-recall")]


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
    metrics = {goal.key(k): goal.of_all(at) for goal in (*measured_goals(), *goals)}
    if at.truth.taste is not None and (cold := at.truth.taste < 0).any():
        ndcg = METRICS["ndcg"].formula(at)
        for group, rows in (("warm-users", ~cold), ("cold-users", cold)):
            metrics[f"ndcg@{k}/{group}"] = mean_of_known(ndcg[rows])
    return Point(candidate, accuracy, goals, each, values, outside, metrics)


def _of_some(goals: Sequence[Goal], each: Sequence[Floats | None], at: Context, rows: Rows) -> tuple[float, ...]:
    """Each goal's value over some users; NaN over nobody."""
    if not len(rows):
        return (float("nan"),) * len(goals)
    part = Context(at.truth, at.lists[rows], at.hits[rows], at.relevant[rows], rows)
    pairs = zip(goals, each, strict=True)
    return tuple(goal.of_all(part) if known is None else mean_of_known(known[rows]) for goal, known in pairs)


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
        lists = self.evaluator.lists_of(dialled_family(method, kappas), len(kappas), method.graph.device)
        yield from ((Candidate(model, None, kappa), one) for kappa, one in zip(kappas, lists, strict=True))
        others = [one for one in rerankers if not isinstance(one, Dial)]
        if others:
            lists = self.evaluator.lists_reranked(method, others)
            yield from ((Candidate(model, other), one) for other, one in zip(others, lists, strict=True))

    def as_run(self, model: str, method: Method, kappa: float, reranker: Reranker | None) -> Point:
        """A run as it stands, with the dial and the re-ranker that it keeps."""
        return self.point(Candidate(model, reranker, kappa), self.evaluator.lists(method, kappa, reranker))

    def point(self, candidate: Candidate, lists: NDArray[Any]) -> Point:
        """Measure lists, (users, k)."""
        at = self.evaluator.truth.context(lists.astype(np.int32))
        accuracy = {name: one.of(at) for name, one in self.accuracies.items()}
        return measure(candidate, at, accuracy, self.goals, self.folds)
