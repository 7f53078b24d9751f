"""xQuAD for the long tail: rewards items whose group is not yet covered by the list.

    (1 − λ) score + λ P(c | u) cov(c, S)

with c the item's group, popular or niche (or its value of the column `by`), P(c | u) its share of the user's history,
and S the list so far (Abdollahpouri, Burke and Mobasher, FLAIRS 2019; the principle is Santos et al.'s, WWW 2010).
"""

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from dpaa.data.pairs import POPULAR_SHARE
from dpaa.ranking.reranker import Candidates
from dpaa.ranking.rerankers._greedy import Grouped, greedy, history_shares


def coverage(kind: str, counts: Tensor) -> Tensor:
    """Share of each group that is still to be covered, 1 to 0, by how many are in the list.  (users, groups)."""
    if kind == "binary":
        return (counts == 0).double()
    length = counts.sum(dim=1, keepdim=True)
    missing = 1.0 - counts / length.clamp(min=1.0)
    return missing**length if kind == "smooth" else missing


class XQuAD(Grouped):
    """Covers popular and niche items in proportion to their shares of the user's history."""

    name: ClassVar[str] = "xquad"
    title: ClassVar[str] = "rewards items whose group (popular, niche) is not yet covered by the list"
    paper: ClassVar[str] = "Abdollahpouri et al., Managing Popularity Bias with Personalized Re-ranking, FLAIRS 2019"
    strengths: ClassVar[tuple[float, ...]] = (0.1, 0.2, 0.3, 0.4, 0.6)

    strength: float = Field(default=0.3, ge=0, le=1)
    """λ: 0 is the list as it was."""
    coverage: Literal["binary", "smooth", "proportional"] = "binary"
    """`binary`: a group is covered by its first item; `smooth`: (1 − its share of the list)^length; `proportional`:
    without that power."""
    popular_mass: float = Field(default=POPULAR_SHARE, gt=0, lt=1)
    """Popular items cover this share of the training interactions."""

    def arrange(self, scores: Tensor, items: Tensor, users: Tensor, k: int, candidates: Candidates) -> Tensor:
        """Fill the list greedily by score and coverage."""
        (group, n_groups), share = self.groups(candidates, self.popular_mass), self.strength
        wanted = history_shares(candidates, users, group, n_groups)

        def gain(first: Tensor, counts: Tensor) -> Tensor:
            return torch.lerp(first, wanted * coverage(self.coverage, counts), share)

        return greedy(scores, group[items], n_groups, k, gain)
