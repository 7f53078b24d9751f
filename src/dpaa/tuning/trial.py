"""Trials of a study and the metrics they are judged by; nothing here needs Optuna."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpaa._io import read_bytes
from dpaa._text import in_digits
from dpaa.data.dataset import Dataset
from dpaa.errors import InputError
from dpaa.evaluation.evaluator import Evaluator
from dpaa.evaluation.metrics import GROUPS, METRICS, Metric
from dpaa.methods.base import Method

TRAINED = ("complete", "pruned", "diverged")
"""States of a trial that cost a training."""
DEFAULT = "recall@20"
OUT_OF_BOUNDS = 1e9
"""Subtracted per share lost beyond the limit, so that such trials rank below all others."""
_KEY = re.compile(r"(?P<name>[a-z_]+)@(?P<k>[1-9][0-9]{0,5})(/(?P<group>[a-z-]+))?")


@dataclass(frozen=True)
class Trial:
    """One line of `trials.jsonl`.

    Parameters
    ----------
    number : in the order of their beginning
    state : `complete`; `pruned`: stopped, being worse than the median of the others; `diverged`: the loss became no
        number; `repeated`: hyperparameters already tried, not trained; `lost`: its process ended; `running`
    settings : hyperparameters that are searched; the others are in `study.json`
    value : validation recall@20, or the first `--metric`, of the finished model; recall@20 of the best epoch if pruned
    seconds : wall time of the training
    best_epoch : from 1; None where nothing is trained in epochs
    curve : validation recall@20 after each epoch
    same_as : of a repeated trial, the one whose result it takes
    diverged : the message of a training that diverged
    metrics : on validation, of the finished model: all that the search looks at
    """

    number: int
    state: str
    settings: dict[str, Any]
    value: float | None
    seconds: float | None
    best_epoch: int | None = None
    curve: list[float] = field(default_factory=list)
    same_as: int | None = None
    diverged: str | None = None
    metrics: dict[str, float] = field(default_factory=dict)


def best_toml(method: str, settings: Mapping[str, Any], best: Trial, tried: int, name: str = "best.toml") -> str:
    """The text of a file of hyperparameters for `dpaa train --config`.

    Parameters
    ----------
    method, settings : name of the method and all hyperparameters that differ from its defaults
    best : the trial they come from
    tried : number of different hyperparameters in the study
    name : of the file, for its comment

    Returns
    -------
    TOML; `trials_behind` reads the first comment
    """
    metrics = best.metrics or {DEFAULT: best.value or 0.0}
    lines = [
        f"# trial {best.number} of {tried}, validation {', '.join(f'{key} {one:.6f}' for key, one in metrics.items())}",
        f"# dpaa train DATASET --config {name} --out RUN",
        f'method = "{method}"',
        *(f"{name} = {json.dumps(value)}" for name, value in settings.items()),
    ]
    return "\n".join(lines) + "\n"


def trials_behind(config: Path) -> int:
    """How many hyperparameters were tried for those of a `best.toml`, wherever it was copied.

    Parameters
    ----------
    config : a TOML file

    Returns
    -------
    Number of trials; 0 for any other file
    """
    match = re.match(rb"# trial \d+ of (\d{1,9}),", read_bytes(config, 100, whole=False))
    return int(match[1]) if match else 0


def metric_of(key: str) -> tuple[Metric, int]:
    """The metric and the k of a key such as `recall@20/niche`; one that is not in the table is refused."""
    match = _KEY.fullmatch(key.strip())
    metric = METRICS.get(match["name"]) if match else None
    if match is not None and metric is not None:
        group = match["group"]
        by_taste = group is not None and group.endswith("-tastes")
        grouped = metric.per_user and metric.by_taste if by_taste else metric.kind == "accuracy"
        if group is None or (group in GROUPS and grouped):
            return metric, int(match["k"])
    raise InputError(
        f"there is no metric {key!r}; write NAME@K or NAME@K/GROUP, such as recall@20/niche, with one of "
        f"{', '.join(METRICS)}"
    )


def _parse_limit(text: str) -> tuple[str, float]:
    """`ndcg@20=2%` or `ndcg@20=0.02`."""
    key, equals, amount = text.rpartition("=")
    try:
        share = float(amount.strip().removesuffix("%")) / (100 if amount.strip().endswith("%") else 1)
    except ValueError:
        share = math.nan
    if not equals or not 0 <= share < 1 or not in_digits(amount, share):
        raise InputError(f"the largest loss is KEY=SHARE, got {text!r}; write for example ndcg@20=2%")
    if metric_of(key)[0].better == "zero":
        raise InputError(f"of {key} nothing can be lost: it is best at 0; limit another metric")
    return key.strip(), share


def _merit(key: str, value: float) -> float:
    """More is better, whatever the metric."""
    better = metric_of(key)[0].better
    return value if better == "high" else -value if better == "low" else -abs(value)


@dataclass(frozen=True)
class TuningGoal:
    """What a search is for: one metric or two, and what may be lost of others meanwhile.

    Parameters
    ----------
    metrics : keys of `evaluate`, measured on validation
    most_loss : other keys, with the share of the best of all trials that may be lost
    """

    metrics: tuple[str, ...] = (DEFAULT,)
    most_loss: tuple[tuple[str, float], ...] = ()

    @classmethod
    def parse(cls, metrics: Sequence[str] | str | None, most_loss: Sequence[str] | str | None) -> TuningGoal:
        """From the options `--metric` and `--most-loss`; None takes the default."""
        keys = tuple(key.strip() for key in ([metrics] if isinstance(metrics, str) else metrics or [DEFAULT]))
        goal = cls(keys, tuple(map(_parse_limit, [most_loss] if isinstance(most_loss, str) else most_loss or [])))
        if len(keys) > 2:
            raise InputError(f"a search is for one metric or two, got {len(keys)}; name fewer")
        for key in keys:
            metric_of(key)
        if len(set(goal.keys)) < len(goal.metrics) + len(goal.most_loss):
            raise InputError("a metric is named twice; name each once")
        return goal

    @property
    def plain(self) -> bool:
        """Whether it is validation recall@20 alone, as in early stopping."""
        return self == TuningGoal()

    @property
    def keys(self) -> list[str]:
        """All metrics that are looked at."""
        return list(dict.fromkeys([*self.metrics, *(key for key, _ in self.most_loss)]))

    def in_words(self) -> str:
        """For titles."""
        limits = "".join(f", at most {share:.3g} of the best {key} lost" for key, share in self.most_loss)
        return f"validation {' and '.join(self.metrics)}{limits}"

    def as_json(self) -> dict[str, Any]:
        """For `study.json`."""
        return {"metrics": list(self.metrics), "most_loss": dict(self.most_loss)}

    def measure(self, method: Method, data: Dataset) -> dict[str, float]:
        """All metrics of a trained method on validation; one without a value is refused."""
        if self.plain:
            return {DEFAULT: Evaluator(data, 20, "valid", "drop").recall_of(method)}
        cuts = sorted({metric_of(key)[1] for key in self.keys})
        metrics = Evaluator(data, cuts, "valid", "drop").evaluate(method).metrics
        for key in self.keys:
            if not math.isfinite(metrics.get(key, math.nan)):
                raise InputError(
                    f"{key} has no value on the validation split of {data.name} (no pair of that group perhaps); "
                    "choose another metric"
                )
        return {key: metrics[key] for key in self.keys}

    def merits(self, metrics: Mapping[str, float]) -> list[float]:
        """One number per metric that is searched for; more is better."""
        return [_merit(key, metrics[key]) for key in self.metrics]

    def violation(self, metrics: Mapping[str, float], others: Sequence[Mapping[str, float]]) -> float:
        """Share lost beyond the limits, compared with the best of all trials; 0 within them."""
        total = 0.0
        for key, share in self.most_loss:
            merit = _merit(key, metrics[key])
            best = max(merit, *(_merit(key, other[key]) for other in others)) if others else merit
            total += max((best - merit) / max(abs(best), 1e-12) - share, 0.0)
        return total

    def objective_values(self, metrics: Mapping[str, float], others: Sequence[Mapping[str, float]]) -> list[float]:
        """What the sampler is given: the merits, or less than any merit where too much is lost."""
        violation = self.violation(metrics, others)
        return [-OUT_OF_BOUNDS * (1 + violation)] * len(self.metrics) if violation else self.merits(metrics)

    def allowed(self, trials: Sequence[Trial]) -> list[Trial]:
        """Finished trials within the limits; the best in a limited metric always is."""
        complete = [trial for trial in trials if trial.state == "complete"]
        metrics = [trial.metrics for trial in complete]
        return [trial for trial in complete if self.violation(trial.metrics, metrics) == 0]

    def front(self, trials: Sequence[Trial]) -> list[Trial]:
        """Trials that no other dominates, best in the first metric first.

        Parameters
        ----------
        trials : of any state

        Returns
        -------
        For one metric the best trial alone; of equal trials the first
        """
        best: dict[tuple[float, ...], Trial] = {}
        for trial in sorted(self.allowed(trials), key=lambda one: one.number):
            best.setdefault(tuple(self.merits(trial.metrics)), trial)
        kept = [
            point
            for point in best
            if not any(other != point and all(map(float.__ge__, other, point)) for other in best)
        ]
        return [best[point] for point in sorted(kept, reverse=True)]
