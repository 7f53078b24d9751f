"""A list for somebody nobody knows: what suits the model's users on average, with the popularity dial where it stands.

    score(i) = mean over users u of  score(u, i) + κ · sd_u · p_i

The second term is the dial's own (`dpaa.reranking.dial`).  It is a popularity list as the model sees popularity: items
that many like rank high, κ < 0 takes counts out of it as it does for everybody.  Users without training pairs, about
whom nothing was learned, have no part in the mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dpaa.methods.base import Method
from dpaa.reranking.dial import BLOCK_SCORES, DialVectors, popularity_coordinate, scores_and_deviations

BLOCK_USERS = 65_536
MOST_USERS = 1_000
"""Users, evenly spread, whose scores are averaged where a method ranks by anything else than an inner product."""


@dataclass(frozen=True, eq=False)
class Fallback:
    """Both terms for every item; κ is a choice at query time."""

    mean: Tensor
    """(n_items,) float32"""
    lean: Tensor
    """Mean of sd_u times p_i, (n_items,) float32."""

    @classmethod
    def of(cls, method: Method) -> Fallback:
        """From the users with training pairs."""
        graph = method.graph
        users = graph.user_degree.cpu().nonzero().squeeze(1)
        vectors, dial = method.vectors(), DialVectors.of(method)
        if vectors is not None and dial is not None:
            query = torch.zeros(vectors.items.shape[1], dtype=torch.float64)
            deviation = 0.0
            for block in torch.split(users, BLOCK_USERS):
                queries = vectors.queries(block.to(method.device))
                query += queries.double().sum(dim=0).cpu()
                deviation += float(dial.deviation(queries).double().sum())
            n = max(len(users), 1)
            mean = (vectors.items.cpu() @ (query / n).float()[:, None]).squeeze(1)
            return cls(mean, deviation / n * popularity_coordinate(graph).cpu())
        if len(users) > MOST_USERS:
            users = users[torch.linspace(0, len(users) - 1, MOST_USERS).long()]
        scored = scores_and_deviations(method)
        total, deviation = torch.zeros(graph.n_items, dtype=torch.float64), 0.0
        for block in torch.split(users, max(1, BLOCK_SCORES // max(graph.n_items, 1))):
            scores, deviations = scored(block.to(method.device))
            total += scores.double().sum(dim=0).cpu()
            deviation += float(deviations.double().sum())
        n = max(len(users), 1)
        return cls((total / n).float(), deviation / n * popularity_coordinate(graph).cpu())

    def scores(self, kappa: float) -> Tensor:
        """At κ, (n_items,)."""
        return self.mean + kappa * self.lean
