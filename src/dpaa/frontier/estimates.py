"""How accurate are lists, judged on validation pairs that may be as biased as the log?  Three estimates.

Each weighs the relevant pairs by their item, `w_i`, and is an NDCG that a pair enters by its weight:

    accuracy = Σ_u W_u ndcg_u / Σ_u W_u,    ndcg_u = Σ_hits w_i/log2(rank + 1) / (the same of the best list)

with `W_u` the mean weight of the user's relevant pairs.  With equal weights it is the usual NDCG, a mean over users.

| estimate | w_i | asks |
|---|---|---|
| `logged` | 1 | how well do lists find what the log holds? |
| `ips` | 1 / max(floor, (count_i / largest count)^power) | how well, were all items met equally often? |
| `balanced` | 1 / validation pairs of the item | how well, counting every item alike? |
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dpaa.errors import InputError
from dpaa.evaluation.context import Context, GroundTruth
from dpaa.evaluation.offpolicy import FLOOR, POWER, ValidationExposure, best_gain, propensities

Floats = NDArray[np.float64]
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
    """One estimate for the users of a ground truth, made ready once for any lists."""

    truth: GroundTruth
    k: int
    estimate: Estimate = "logged"
    power: float = POWER
    floor: float = FLOOR

    def __post_init__(self) -> None:
        if self.estimate not in ESTIMATES:
            raise InputError(f"the estimate must be one of {', '.join(ESTIMATES)}, got {self.estimate!r}")

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
        """What each user adds, (users,): the mean over users is the estimate."""
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
