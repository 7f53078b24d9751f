"""What a search is for: a metric of the table, two of them, or one while others must not be lost.

Metrics are those of the finished model on validation, by the keys of `evaluate`: `recall@20/niche`.  Inside, all are
merits, of which more is better.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpaa.data.dataset import Dataset
from dpaa.errors import InputError
from dpaa.evaluation.evaluator import Evaluator
from dpaa.evaluation.metrics import GROUPS, METRICS, Metric
from dpaa.methods.base import Method
from dpaa.text import in_digits
from dpaa.tuning.trial import Trial

DEFAULT = "recall@20"
_KEY = re.compile(r"(?P<name>[a-z_]+)@(?P<k>[1-9][0-9]{0,5})(/(?P<group>[a-z-]+))?")
OUT_OF_BOUNDS = 1e9
"""What is taken off for each share lost beyond what may be, so that such trials rank below all others."""


def metric_of(key: str) -> tuple[Metric, int]:
    """The metric and the k of a key; one that is not in the table is refused."""
    found = _KEY.fullmatch(key.strip())
    metric = METRICS.get(found["name"]) if found else None
    group = found["group"] if found else None
    by_items = metric is not None and metric.kind == "accuracy"
    by_users = metric is not None and metric.per_user and metric.by_taste
    allowed = group is None or (by_items and not group.endswith("-tastes")) or (by_users and group.endswith("-tastes"))
    if found is None or metric is None or not allowed or (group is not None and group not in GROUPS):
        raise InputError(
            f"there is no metric {key!r}; write NAME@K or NAME@K/GROUP, such as recall@20/niche, with one of "
            f"{', '.join(METRICS)}"
        )
    return metric, int(found["k"])


@dataclass(frozen=True)
class MostLoss:
    """How much of a metric may be lost, as a share of the best that any trial has."""

    key: str
    share: float

    @classmethod
    def parse(cls, text: str) -> MostLoss:
        """`ndcg@20=2%`, or `ndcg@20=0.02`."""
        key, equals, amount = text.rpartition("=")
        try:
            share = float(amount.strip().removesuffix("%")) / (100 if amount.strip().endswith("%") else 1)
        except ValueError:
            share = math.nan
        if not equals or not 0 <= share < 1 or not in_digits(amount, share):
            raise InputError(f"the largest loss is KEY=SHARE, got {text!r}; write for example ndcg@20=2%")
        if metric_of(key)[0].better == "zero":
            raise InputError(f"of {key} nothing can be lost: it is best at 0; limit another metric")
        return cls(key.strip(), share)

    def violation(self, value: float, best: float) -> float:
        """By how much of the best more is lost than may be; 0 where it is not."""
        low = metric_of(self.key)[0].better == "low"
        loss = (value - best if low else best - value) / max(abs(best), 1e-12)
        return max(loss - self.share, 0.0)


@dataclass(frozen=True)
class TuningGoal:
    """One metric or two, and what must not be lost meanwhile."""

    metrics: tuple[str, ...] = (DEFAULT,)
    most_loss: tuple[MostLoss, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= len(self.metrics) <= 2:
            raise InputError(f"a search is for one metric or two, got {len(self.metrics)}; name fewer")
        for key in self.metrics:
            metric_of(key)
        if len(set(self.keys)) < len(self.metrics) + len(self.most_loss):
            raise InputError("a metric is named twice; name each once")

    @classmethod
    def parse(cls, metrics: Sequence[str] | str | None, most_loss: Sequence[str] | str | None) -> TuningGoal:
        """As it is typed."""
        several = [metrics] if isinstance(metrics, str) else list(metrics or [DEFAULT])
        limits = [most_loss] if isinstance(most_loss, str) else list(most_loss or [])
        return cls(tuple(key.strip() for key in several), tuple(MostLoss.parse(one) for one in limits))

    @property
    def plain(self) -> bool:
        """Whether it is validation recall@20 and nothing else, as early stopping looks at."""
        return self == TuningGoal()

    @property
    def keys(self) -> list[str]:
        """All metrics that are looked at."""
        return list(dict.fromkeys([*self.metrics, *(limit.key for limit in self.most_loss)]))

    def in_words(self) -> str:
        """As titles have it."""
        limits = "".join(f", at most {limit.share:.3g} of the best {limit.key} lost" for limit in self.most_loss)
        return f"validation {' and '.join(self.metrics)}{limits}"

    def as_json(self) -> dict[str, Any]:
        """For `study.json`."""
        return {"metrics": list(self.metrics), "most_loss": {limit.key: limit.share for limit in self.most_loss}}

    # ------------------------------------------------------------------ of one model

    def measure(self, method: Method, data: Dataset) -> dict[str, float]:
        """The metrics of a finished model on validation."""
        cuts = sorted({metric_of(key)[1] for key in self.keys})
        if self.plain:
            return {DEFAULT: Evaluator(data, 20, "valid", "drop").recall_of(method)}
        found = Evaluator(data, cuts, "valid", "drop").evaluate(method).metrics
        for key in self.keys:
            if not math.isfinite(found.get(key, math.nan)):
                raise InputError(
                    f"{key} has no value on the validation split of {data.name} (no pair of that group perhaps); "
                    "choose another metric"
                )
        return {key: found[key] for key in self.keys}

    def merits(self, found: Mapping[str, float]) -> list[float]:
        """Of each metric that is searched for: the more the better."""
        signs = {"high": lambda value: value, "low": lambda value: -value, "zero": lambda value: -abs(value)}
        return [signs[metric_of(key)[0].better](found[key]) for key in self.metrics]

    # ------------------------------------------------------------------ of all trials

    def violation(self, found: Mapping[str, float], others: Sequence[Mapping[str, float]]) -> float:
        """How much more is lost than may be, next to the best of all."""
        total = 0.0
        for limit in self.most_loss:
            low = metric_of(limit.key)[0].better == "low"
            values = [one[limit.key] for one in (*others, found)]
            total += limit.violation(found[limit.key], min(values) if low else max(values))
        return total

    def told(self, found: Mapping[str, float], others: Sequence[Mapping[str, float]]) -> list[float]:
        """What the search is told a trial is worth, by what is known so far."""
        lost = self.violation(found, others)
        return [-OUT_OF_BOUNDS * (1 + lost)] * len(self.metrics) if lost else self.merits(found)

    def allowed(self, trials: Sequence[Trial]) -> list[Trial]:
        """Finished trials that keep what must not be lost; whoever has most of it always does."""
        complete = [trial for trial in trials if trial.state == "complete"]
        known = [trial.metrics for trial in complete]
        return [trial for trial in complete if self.violation(trial.metrics, known) == 0]

    def front(self, trials: Sequence[Trial]) -> list[Trial]:
        """Those that no other beats in one metric without losing in the other; best in the first metric first.

        Of one metric, the best alone; of equals the first.
        """
        best: dict[tuple[float, ...], Trial] = {}
        for trial in sorted(self.allowed(trials), key=lambda one: one.number):
            best.setdefault(tuple(self.merits(trial.metrics)), trial)
        kept = [
            point
            for point in best
            if not any(
                other != point and all(one >= own for one, own in zip(other, point, strict=True)) for other in best
            )
        ]
        return [best[point] for point in sorted(kept, reverse=True)]


RECALL = TuningGoal()
"""What is searched for unless somebody says otherwise."""
