"""PC, popularity compensation: add a term to the scores that falls with popularity (Zhu et al., WSDM 2021).

    s'_ui = s_ui + α c_ui ‖s_u‖ / ‖c_u‖,     c_ui = (β s_ui + 1 − β) / (d_i + 1)

with d training counts and both norms over the user's candidates.
"""

from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor

from dpaa.ranking.rerankers._greedy import Rescored


class PC(Rescored):
    """A compensation that falls with popularity is added to every score."""

    name: ClassVar[str] = "pc"
    title: ClassVar[str] = "a compensation that falls with popularity, added to every score"
    paper: ClassVar[str] = "Zhu et al., Popularity-Opportunity Bias in Collaborative Filtering, WSDM 2021"
    strengths: ClassVar[tuple[float, ...]] = (0.03, 0.1, 0.2, 0.4)

    strength: float = Field(default=0.1, ge=0, le=1)
    """α: 0 is the list as it was."""
    score_share: float = Field(default=0.1, ge=0, le=1)
    """β: how much of the compensation follows the score itself."""

    def rescored(self, scores: Tensor, popularity: Tensor) -> Tensor:
        """Score and compensation, the latter as long as the former where α = 1."""
        there = scores > -torch.inf
        known = scores.masked_fill(~there, 0.0)
        compensation = ((self.score_share * known + 1.0 - self.score_share) / (popularity + 1.0)).masked_fill(~there, 0)
        length = torch.linalg.vector_norm(compensation, dim=1, keepdim=True)
        scale = torch.linalg.vector_norm(known, dim=1, keepdim=True) / torch.where(length > 0, length, 1.0)
        return torch.where(there, known + self.strength * scale * compensation, -torch.inf)
