"""Calibration: the groups of the list should have the shares that they have in the user's history.

    (1 − λ) Σ score − λ distance(history, list)

over three groups of items, by how much of the interactions they cover.  The distance is the Jensen-Shannon divergence
(calibrated popularity, Abdollahpouri et al., UMAP 2021), or Kullback-Leibler's of the history from the smoothed list,

    KL(p ‖ q̃),     q̃ = (1 − α) q + α p

with p the groups' shares of the user's history and q those of the list (Steck, RecSys 2018, with genres as groups).
"""

import math
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor

from dpaa.ranking.reranker import Candidates
from dpaa.ranking.rerankers._greedy import Grouped, greedy, history_shares, shares_with_one_more


def jensen_shannon(one: Tensor, two: Tensor) -> Tensor:
    """Jensen-Shannon divergence of shares along the last dimension, in bits: from 0 to 1."""
    middle = (one + two) / 2
    between, first, second = (-torch.xlogy(shares, shares).sum(dim=-1) for shares in (middle, one, two))
    return (between - (first + second) / 2) / math.log(2)


class CalibratedPopularity(Grouped):
    """Popular, middle and rare items in the proportions of the user's own history."""

    name: ClassVar[str] = "calibrated-popularity"
    title: ClassVar[str] = "popular, middle and rare items in the proportions of the user's history (Jensen-Shannon)"
    paper: ClassVar[str] = "Abdollahpouri et al., User-centered Evaluation of Popularity Bias, UMAP 2021"
    strengths: ClassVar[tuple[float, ...]] = (0.5, 0.8, 0.9, 0.97)

    strength: float = Field(default=0.9, ge=0, le=1)
    """λ: 0 is the list as it was; the divergence is small against a sum of scores, so values near 1 are usual."""
    popular_mass: float = Field(default=0.2, gt=0, lt=1)
    """The most popular items that cover this share of the training interactions are the first group."""
    tail_share: float = Field(default=0.2, gt=0, lt=1)
    """The rarest items that cover this share are the last one."""

    def distance(self, wanted: Tensor, listed: Tensor) -> Tensor:
        """How far the shares of the list are from those that are wanted, along the last dimension."""
        return jensen_shannon(wanted, listed)

    def arrange(self, scores: Tensor, items: Tensor, users: Tensor, k: int, candidates: Candidates) -> Tensor:
        """Greedily; who has no history keeps the list as it was."""
        share = self.strength
        group, n_groups = self.groups(candidates, self.popular_mass, 1.0 - self.tail_share)
        wanted = history_shares(candidates, users, group, n_groups)
        known = wanted.sum(dim=1, keepdim=True) > 0

        def gain(first: Tensor, counts: Tensor) -> Tensor:
            far = self.distance(wanted[:, None, :], shares_with_one_more(counts))
            return (1.0 - share) * first - share * torch.where(known, far, 0.0)

        return greedy(scores, group[items], n_groups, k, gain)


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
        """`Σ p log(p / q̃)` in nats; a group that is not wanted adds nothing."""
        mixed = torch.lerp(listed, wanted, self.smoothing)
        return torch.xlogy(wanted, wanted / torch.where(wanted > 0, mixed, 1.0)).sum(dim=-1)
