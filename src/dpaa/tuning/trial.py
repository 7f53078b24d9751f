"""Trials of a study and the metrics they are judged by; nothing here needs Optuna."""

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from dpaa._io import read_bytes
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
_LIMIT = re.compile(r"(?P<key>[^=]+)=(?P<share>[0-9]*\.?[0-9]+)(?P<percent>%?)")


@dataclass(frozen=True)
class Trial:
    """One line of `trials.jsonl`.

    Parameters
    ----------
    number : in the order of their beginning
    state : `complete`; `pruned`: stopped, being worse than the median of the others; `diverged`: the loss became no
        number; `lost`: its process ended, and its hyperparameters are tried again; `running`
    settings : hyperparameters that are searched; the others are in `study.json`
    value : validation recall@20, or `--metric`, of the finished model; recall@20 of the best epoch if pruned
    seconds : wall time of the training
    best_epoch : from 1; None where nothing is trained in epochs
    curve : validation recall@20 after each epoch
    diverged : the message of a training that diverged
    metrics : on validation, of the finished model: all that the search looks at
    lookups : how many models validation compared: 1, or as many strengths as were tried after training
    """

    number: int
    state: str
    settings: dict[str, Any]
    value: float | None
    seconds: float | None = None
    best_epoch: int | None = None
    curve: list[float] = field(default_factory=list)
    diverged: str | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    lookups: int = 1


def best_toml(method: str, settings: Mapping[str, Any], best: Trial, tried: int) -> str:
    """The text of a file of hyperparameters for `dpaa train --config`.

    Parameters
    ----------
    method, settings : name of the method and all hyperparameters that differ from its defaults
    best : the trial they come from
    tried : number of different hyperparameters in the study

    Returns
    -------
    TOML; `trials_behind` reads the first comment
    """
    metrics = ", ".join(f"{key} {value:.6f}" for key, value in best.metrics.items())
    lines = [f"# trial {best.number} of {tried}, validation {metrics}", f'method = "{method}"']
    return "\n".join([*lines, *(f"{name} = {json.dumps(value)}" for name, value in settings.items()), ""])


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


@dataclass(frozen=True)
class TuningGoal:
    """The metric that a search optimises, and the allowed loss of other metrics.

    Parameters
    ----------
    key : of `evaluate`, such as `recall@20/niche`, measured on validation
    most_loss : such as `ndcg@20=2%`: the share that may be lost of another metric, next to the best of all trials
    """

    key: str = DEFAULT
    most_loss: str | None = None

    def __post_init__(self) -> None:
        for key in self.keys:
            match = _KEY.fullmatch(key)
            if match is None or match["name"] not in METRICS or match["group"] not in (None, *GROUPS):
                raise InputError(f"there is no metric {key!r}; write one such as recall@20 or recall@20/niche")

    @cached_property
    def _limit(self) -> tuple[str, float] | None:
        """The metric that may lose, and the share that may be lost."""
        match = _LIMIT.fullmatch(self.most_loss or "")
        if self.most_loss is not None and match is None:
            raise InputError(f"--max-loss takes KEY=SHARE, got {self.most_loss!r}; write for example ndcg@20=2%")
        return (match["key"], float(match["share"]) / (100 if match["percent"] else 1)) if match else None

    @property
    def keys(self) -> list[str]:
        """All metrics that are looked at."""
        return [self.key, *([self._limit[0]] if self._limit else [])]

    def measure(self, method: Method, data: Dataset) -> dict[str, float]:
        """Measure a trained method on validation; a metric without a value is refused.

        Parameters
        ----------
        method : trained
        data : the dataset

        Returns
        -------
        metric → value
        """
        if self == TuningGoal():
            return {DEFAULT: Evaluator(data, 20, "valid", "drop").recall_of(method)}
        cuts = sorted({int(key.partition("@")[2].partition("/")[0]) for key in self.keys})
        metrics = Evaluator(data, cuts, "valid", "drop").evaluate(method).metrics
        for key in self.keys:
            if not math.isfinite(metrics.get(key, math.nan)):
                raise InputError(f"{key} has no value on the validation split of {data.name}; choose another metric")
        return {key: metrics[key] for key in self.keys}

    def merit(self, metrics: Mapping[str, float], others: Iterable[Mapping[str, float]] = ()) -> float:
        """More is better, whatever the metric; far below all others where more is lost than allowed.

        Parameters
        ----------
        metrics : of a trial
        others : of the other trials

        Returns
        -------
        the merit
        """
        if self._limit:
            key, share = self._limit
            merit = Metric.of(key).merit
            best = max(merit(trial[key]) for trial in (metrics, *others))
            excess = (best - merit(metrics[key])) / max(abs(best), 1e-12) - share
            if excess > 0:
                return -OUT_OF_BOUNDS * (1 + excess)
        return Metric.of(self.key).merit(metrics[self.key])

    def ranked(self, trials: Iterable[Trial]) -> list[Trial]:
        """Rank the finished trials, the best first; of equal trials the earlier.

        Parameters
        ----------
        trials : of a study, in any state

        Returns
        -------
        the complete ones
        """
        complete = [trial for trial in trials if trial.state == "complete"]
        return sorted(complete, key=lambda trial: -self.merit(trial.metrics, [t.metrics for t in complete]))
