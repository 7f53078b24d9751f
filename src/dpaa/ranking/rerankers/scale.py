"""Scale: scores divided by a power of popularity (Zhu et al., KDD 2021, their static correction).

s'_ui = s_ui (d_i + 1)^−α / mean of (d + 1)^−α,     s from 0 to 1 per user
"""

from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor

from dpaa.ranking.rerankers._greedy import Rescored, normalised


class Scale(Rescored):
    """Multiplies scores by a factor that falls with popularity."""

    name: ClassVar[str] = "scale"
    title: ClassVar[str] = "scores divided by a power of popularity"
    paper: ClassVar[str] = "Zhu et al., Popularity Bias in Dynamic Recommendation, KDD 2021"
    strengths: ClassVar[tuple[float, ...]] = (0.1, 0.3, 0.6)

    strength: float = Field(default=0.1, ge=0, le=16)
    """α: 0 is the list as it was."""

    def rescored(self, scores: Tensor, popularity: Tensor) -> Tensor:
        """Scores from 0 to 1, since a factor means nothing below 0; weights have mean 1 over the candidates."""
        if not self.strength:
            return scores
        there = scores > -torch.inf
        weight = (popularity.double() + 1.0) ** -self.strength
        mean = torch.where(there, weight, 0.0).sum(dim=1, keepdim=True) / there.sum(dim=1, keepdim=True).clamp(min=1)
        return torch.where(there, normalised(scores) * (weight / torch.where(mean > 0, mean, 1.0)), -torch.inf)
