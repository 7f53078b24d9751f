"""Steck's calibration, by the Kullback-Leibler divergence, of the list's popularity groups.

    (1 − λ) Σ score − λ KL(p ‖ q̃),     q̃ = (1 − α) q + α p

with p the groups' shares of the user's history and q those of the list (Steck, RecSys 2018, with genres as groups).
"""

from __future__ import annotations

from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor

from dpaa.ranking.rerankers.calibrated_popularity import CalibratedPopularity


def _kullback_leibler(wanted: Tensor, listed: Tensor, smoothing: float) -> Tensor:
    """`Σ p log(p / q̃)` along the last dimension, in nats; a group that is not wanted adds nothing."""
    mixed = torch.lerp(listed, wanted, smoothing)
    return torch.xlogy(wanted, wanted / torch.where(wanted > 0, mixed, 1.0)).sum(dim=-1)


class Steck(CalibratedPopularity):
    """Like calibrated popularity, with a divergence that penalises a missing group hardest."""

    name: ClassVar[str] = "steck"
    title: ClassVar[str] = "popular, middle and rare items in the proportions of the user's history (Kullback-Leibler)"
    paper: ClassVar[str] = "Steck, Calibrated Recommendations, RecSys 2018"
    strengths: ClassVar[tuple[float, ...]] = (0.1, 0.3, 0.5)

    strength: float = Field(default=0.5, ge=0, le=1)
    """λ: 0 is the list as it was."""
    smoothing: float = Field(default=0.01, gt=0, lt=1)
    """α: how much of p is mixed into q, so that a missing group costs much but not everything."""

    def distance(self, wanted: Tensor, listed: Tensor) -> Tensor:
        """The divergence of the list from the history."""
        return _kullback_leibler(wanted, listed, self.smoothing)
