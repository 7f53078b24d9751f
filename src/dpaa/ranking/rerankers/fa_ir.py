"""FA*IR: a minimum of niche items in every prefix, by a binomial test (Zehlike et al., CIKM 2017).

A list of n is fair where the number of its niche items is no surprise for n draws with probability p: at least the
smallest t with P(X ≤ t) > α, X binomial.
"""

from typing import ClassVar

import torch
from pydantic import Field
from scipy.special import bdtr
from torch import Tensor

from dpaa.data.pairs import POPULAR_SHARE
from dpaa.errors import InputError
from dpaa.ranking.reranker import Candidates
from dpaa.ranking.rerankers._greedy import Grouped, greedy

NICHE = 1


def _fewest_protected(k: int, share: float, significance: float) -> list[int]:
    """Count the protected items that the first 1, 2, …, k ranks need."""
    needed, fewest = [], 0
    for length in range(1, k + 1):
        while bdtr(fewest, length, share) <= significance:  # never falls as lists grow
            fewest += 1
        needed.append(fewest)
    return needed


class FAIR(Grouped):
    """Takes the best item, or the best niche item if the prefix would have too few."""

    name: ClassVar[str] = "fa-ir"
    title: ClassVar[str] = "at every rank at least as many niche items as a binomial test with p requires"
    paper: ClassVar[str] = "Zehlike et al., FA*IR: A Fair Top-k Ranking Algorithm, CIKM 2017"
    strengths: ClassVar[tuple[float, ...]] = (0.1, 0.2, 0.3, 0.4, 0.6)

    strength: float = Field(default=0.5, ge=0, le=1)
    """p: the share of niche items that a list must not fall significantly short of; 0 is the list as it was."""
    significance: float = Field(default=0.1, gt=0, lt=1)
    """α of the test at every rank; the larger, the more niche items."""
    popular_mass: float = Field(default=POPULAR_SHARE, gt=0, lt=1)
    """Popular items cover this share of the training interactions; the others are niche."""

    def arrange(self, scores: Tensor, items: Tensor, users: Tensor, k: int, candidates: Candidates) -> Tensor:
        """Greedily; where niche candidates run out, the list continues without."""
        if self.by is not None and "=" not in self.by:
            raise InputError(f"fa-ir protects one group of items; write by={self.by}=VALUE")
        group, _ = self.groups(candidates, self.popular_mass)
        needed = torch.tensor(_fewest_protected(k, self.strength, self.significance), device=scores.device)

        def gain(first: Tensor, counts: Tensor) -> Tensor:
            length = counts.sum(dim=1).long().clamp(max=k - 1)
            short = counts[:, NICHE] < needed[length]
            first[:, NICHE] = first[:, NICHE].masked_fill(short, torch.inf)
            return first

        return greedy(scores, group[items], 2, k, gain)
