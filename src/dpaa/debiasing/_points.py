"""Every model with every re-ranker, measured on the same validation users: its accuracy and its goals.

Accuracy is NDCG in which a relevant pair counts by the weight of its item:

    accuracy = Σ_u W_u ndcg_u / Σ_u W_u,    ndcg_u = Σ_hits w_i/log2(rank + 1) / (the same of the best list)

with `W_u` the mean weight of the user's relevant pairs and `w_i = 1 / max(floor, (count_i / largest count)^power)`.
Power 0 is the usual NDCG, a mean over users: right if users will meet items as the log's users did.  A higher power
undoes the log's preference for popular items (inverse propensity): right if users will meet items more evenly.  Which
of them holds is not known where validation is a part of the log, so that a choice is judged under each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaa.data.dataset import Dataset
from dpaa.data.ids import Floats
from dpaa.errors import InputError
from dpaa.evaluation.bias import mean_of_known
from dpaa.evaluation.context import Context, GroundTruth
from dpaa.evaluation.evaluator import Evaluator
from dpaa.evaluation.metrics import METRICS, Metric, at_k, exposures
from dpaa.evaluation.offpolicy import FLOOR, POWER, best_gain, fitted_power, propensities
from dpaa.methods.base import Method
from dpaa.ranking.dial import dialled_family
from dpaa.ranking.reranker import Dial, Reranker

Rows = NDArray[np.int64]

EXPOSURES = ("unknown", "as-logged", "shifted")
"""Values of `--exposure`: how items will be exposed to users."""


def plausible_powers(exposure: str, data: Dataset, biased: bool) -> tuple[float, ...]:
    """List the powers under each of which a choice must hold.

    Parameters
    ----------
    exposure : one of `EXPOSURES`
    data : where pairs of randomised exposure are in it, the power is fitted to them
    biased : whether validation comes from the log's own exposure; otherwise it alone counts

    Returns
    -------
    powers, 0 for accuracy as observed
    """
    if exposure not in EXPOSURES:
        raise InputError(f"the exposure must be one of {', '.join(EXPOSURES)}, got {exposure!r}")
    if not biased:
        return (0.0,)
    counts = np.bincount(data.train.item, minlength=data.n_items)
    shifted = POWER if data.randomised is None else round(fitted_power(counts, data.randomised.item), 2)
    return {"as-logged": (0.0,), "shifted": (shifted,), "unknown": tuple(sorted({0.0, shifted}))}[exposure]


@dataclass(frozen=True, eq=False)
class Accuracy:
    """One estimate for the users of a ground truth, prepared once for any lists.

    Parameters
    ----------
    truth : validation users and their relevant items
    k : length of the lists
    power : of the propensities; 0 = every pair counts alike
    """

    truth: GroundTruth
    k: int
    power: float = 0.0

    @property
    def name(self) -> str:
        """Name of the estimate: `logged`, or such as `ips 0.5`."""
        return f"ips {self.power:g}" if self.power else "logged"

    @cached_property
    def weight(self) -> Floats:
        """Weight `w_i` of a relevant pair by its item, (n_items,)."""
        return np.asarray(1.0 / propensities(self.truth.counts, self.power, FLOOR)[0])

    @cached_property
    def _discount(self) -> Floats:
        return np.asarray(1.0 / np.log2(np.arange(self.k) + 2.0))

    @cached_property
    def _users(self) -> tuple[Floats, Floats]:
        """Weight of each user, 1 on average, and the gain of the user's best list of k; (users,) each."""
        row, item = self.truth.relevant_pairs
        n = len(self.truth.users)
        mean = np.bincount(row, self.weight[item], minlength=n) / np.maximum(np.bincount(row, minlength=n), 1)
        return mean / mean.mean(), best_gain(row, self.weight[item], self._discount, n)

    def of(self, at: Context) -> Floats:
        """Compute what each user adds to the estimate, which is their mean.  (users,)."""
        share, best = self._users
        gained = np.where(at.hits, self.weight[at.lists], 0.0) @ self._discount[: at.lists.shape[1]]
        return np.asarray(share * gained / best)

    def as_json(self) -> dict[str, Any]:
        """Describe the estimate; as many pairs of equal weight as `effective_sample_size` would be as noisy."""
        weights = self.weight[self.truth.relevant_pairs[1]]
        size = float(weights.sum() ** 2 / (weights**2).sum())
        pairs = len(self.truth.relevant)
        return {"name": self.name, "power": self.power, "floor": FLOOR, "pairs": pairs, "effective_sample_size": size}


# ---------------------------------------------------------------------- goals

NICHE = "/niche"
ALIASES = {"niche-recall": f"recall{NICHE}", "calibration": "upd"}
"""Name of a goal → metric and item group."""
OFFERED = ("niche-recall", "coverage", "arp", "gini", "calibration")


@dataclass(frozen=True)
class Goal:
    """One metric, perhaps counted on niche items only.

    Parameters
    ----------
    name : as users type it
    metric : of the table of metrics
    niche : whether only niche items are relevant
    """

    name: str
    metric: Metric
    niche: bool

    @classmethod
    def parse(cls, text: str) -> Goal:
        """Read a goal: an alias (`niche-recall`) or a name of the table of metrics (`aplt`, `recall/niche`)."""
        wanted = text.strip().lower()
        name = ALIASES.get(wanted, wanted)
        niche = name.endswith(NICHE)
        metric = METRICS.get(name.removesuffix(NICHE))
        if metric is None or niche != (metric.kind == "accuracy") or metric.kind == "exposure":
            raise InputError(f"there is no goal {text!r}; choose one of {', '.join(OFFERED)}, or another metric")
        return cls(wanted, metric, niche)

    def key(self, k: int) -> str:
        """Key of the goal's metric, as `evaluate` names it."""
        return at_k(f"{self.metric.name}{NICHE if self.niche else ''}", k)

    def of(self, at: Context) -> float | Floats:
        """(users,), NaN for a user without a value; a number where it is a property of all lists together."""
        if not self.metric.per_user:
            return float(self.metric.formula(at))
        part = at.of_items(~at.truth.popular) if self.niche else at
        values = np.full(len(at.lists), np.nan)
        values[part.rows] = self.metric.formula(part)
        return values

    def as_json(self, k: int) -> dict[str, str]:
        """For files."""
        return {"name": self.name, "metric": self.key(k), "better": self.metric.better}

    def score(self, value: float) -> float:
        """Higher is better, whatever direction the metric has; −inf where there is no value."""
        return self.metric.merit(value) if np.isfinite(value) else -np.inf


def parse_goals(texts: Sequence[str]) -> tuple[Goal, ...]:
    """Read the goals of a call: each once, at least one."""
    goals = tuple(Goal.parse(text) for text in texts)
    if not goals or len({goal.key(1) for goal in goals}) < len(goals):
        raise InputError(f"name at least one goal, and each once: {', '.join(OFFERED)}")
    return goals


MEASURED = (
    *(Goal(name, METRICS[name], niche=False) for name in ("ndcg", "recall", "arp", "aplt", "coverage", "gini", "upd")),
    Goal.parse("niche-recall"),
)
"""Measured of every point, whatever the goal."""

# ---------------------------------------------------------------------- points

MOST_USERS = 20_000
"""Validation users that points are measured on; of more, so many are taken, evenly spread."""


@dataclass(frozen=True)
class Candidate:
    """A model, with the dial value and re-ranker that build its lists.

    Parameters
    ----------
    model : its name in the frontier
    reranker : None for the k highest scores
    kappa : of the popularity dial over the model's scores, before the re-ranker
    """

    model: str
    reranker: Reranker | None = None
    kappa: float = 0.0

    @property
    def plain(self) -> bool:
        """Whether the candidate is the model alone."""
        return self.reranker is None and self.kappa == 0

    @property
    def name(self) -> str:
        """`ease`, `ease + dial -0.5`, `ease + xquad 0.3`, `mine + dial 0.25 + xquad 0.3 depth=50`."""
        parts = [self.model, *([f"dial {self.kappa:g}"] if self.kappa else [])]
        if self.reranker is not None:
            changed = self.reranker.model_dump(mode="json", exclude_defaults=True)
            strength = changed.pop("strength", getattr(self.reranker, "strength", None))
            words = [self.reranker.name, *([] if strength is None else [f"{strength:g}"])]
            parts.append(" ".join([*words, *(f"{name}={value}" for name, value in changed.items())]))
        return " + ".join(parts)

    def as_json(self) -> dict[str, Any]:
        """For files."""
        rerank = None if self.reranker is None else self.reranker.as_json()
        return {"name": self.name, "model": self.model, "popularity_dial": self.kappa, "rerank": rerank}


@dataclass(frozen=True, eq=False)
class Point:
    """Accuracy and goal values of a candidate's lists on the validation users, without the lists themselves.

    Parameters
    ----------
    candidate : model and re-ranker
    accuracy : (estimates, users) float32, what each user adds to each estimate
    values : each goal's value, by the users of each part of `Measurer.parts`
    metrics : over all users, by the names of `evaluate`
    """

    candidate: Candidate
    accuracy: NDArray[np.float32] = field(repr=False)
    values: tuple[tuple[float, ...], ...] = field(repr=False)
    metrics: Mapping[str, float] = field(repr=False)

    @property
    def means(self) -> Floats:
        """Accuracy under each estimate, (estimates,)."""
        return np.asarray(self.accuracy.mean(axis=1, dtype=np.float64))


@dataclass(frozen=True, eq=False)
class Measurer:
    """Measures points on the validation users.

    Parameters
    ----------
    evaluator : of the validation split
    goals : what lists shall gain
    estimates : of accuracy, each of which counts
    parts : rows of the users by whom goals are compared, several times
    """

    evaluator: Evaluator
    goals: tuple[Goal, ...]
    estimates: tuple[Accuracy, ...]
    parts: Sequence[Rows]

    def plain(self, model: str, method: Method) -> Point:
        """Measure a model alone, without dial and re-ranker."""
        return self.point(Candidate(model), self.evaluator.lists(method))

    def swept(self, model: str, method: Method, rerankers: Sequence[Reranker]) -> list[Point]:
        """Measure a model with each re-ranker: one pass over the scores for the dial, one for all others."""
        kappas = [r.kappa for r in rerankers if isinstance(r, Dial) and r.kappa]
        others = [r for r in rerankers if not isinstance(r, Dial)]
        points = []
        if kappas:
            lists = self.evaluator.lists_of(dialled_family(method, kappas), len(kappas), method.graph.device)
            points += [self.point(Candidate(model, None, kappa), one) for kappa, one in zip(kappas, lists, strict=True)]
        if others:
            lists = self.evaluator.lists_reranked(method, others)
            points += [self.point(Candidate(model, other), one) for other, one in zip(others, lists, strict=True)]
        return points

    def point(self, candidate: Candidate, lists: NDArray[Any]) -> Point:
        """Measure lists, (users, k)."""
        at = self.evaluator.truth.context(lists.astype(np.int32))
        each = [goal.of(at) for goal in self.goals]
        metrics = {goal.key(lists.shape[1]): _mean(goal.of(at)) for goal in (*MEASURED, *self.goals)}
        metrics |= exposures(at, lists.shape[1])
        accuracy = np.array([estimate.of(at) for estimate in self.estimates], dtype=np.float32)
        return Point(candidate, accuracy, tuple(self._of_part(each, at, rows) for rows in self.parts), metrics)

    def _of_part(self, each: Sequence[float | Floats], at: Context, rows: Rows) -> tuple[float, ...]:
        """Compute each goal's value over some users."""
        part = Context(at.truth, at.lists[rows], at.hits[rows], at.relevant[rows], rows)
        pairs = zip(self.goals, each, strict=True)
        return tuple(_mean(known[rows] if isinstance(known, np.ndarray) else goal.of(part)) for goal, known in pairs)


def _mean(values: float | Floats) -> float:
    return mean_of_known(values) if isinstance(values, np.ndarray) else values
