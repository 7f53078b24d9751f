"""A re-ranker: some places of every list are kept for the less popular half of the candidates."""

from math import ceil

import torch
from pydantic import Field

from dpaa.graph.kernels import top_k
from dpaa.ranking import Reranker


class NicheSlots(Reranker):
    """The best niche items get their places first, the best of the rest the others."""

    name = "niche-slots"
    title = "a share of every list for the less popular half"

    share: float = Field(default=0.5, gt=0, le=1)
    """Share of the places."""

    def rerank(self, scores, users, k, candidates):
        """Lists in the order of the scores."""
        popular = candidates.popularity > candidates.popularity.median()
        _, kept = top_k(scores.masked_fill(popular, -torch.inf), max(1, ceil(self.share * k)))
        first = scores.new_zeros(len(scores), scores.shape[1] + 1, dtype=torch.bool)  # the last column: nothing
        first.scatter_(1, torch.where(kept < 0, scores.shape[1], kept), value=True)
        _, columns = top_k(scores.masked_fill(first[:, :-1], torch.inf), k)
        values = torch.gather(scores, 1, columns.clamp(min=0)).masked_fill(columns < 0, -torch.inf)
        values, order = torch.sort(values, dim=1, descending=True, stable=True)
        return values, torch.gather(columns, 1, order)
