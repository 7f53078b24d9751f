"""The popularity dial: how much a list leans on popularity, turned at query time, for any method.

    score'(u, i) = score(u, i) + κ · sd_u · p_i,     p_i = log(1 + d_i) / sd(log(1 + d))

`d` are training counts; the deviation of `log(1 + d)` is over all items, `sd_u` that of the user's scores over the
items in question.  κ > 0 pushes popularity up, κ < 0 down, 0 is the method itself.

Where a method ranks by an inner product the dial is one more coordinate: `p_i` of an item, `κ · sd_u` of a query, with
`sd_u = √(uᵀ C u)` and C the covariance of the item vectors.  One index of item vectors serves every κ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torch import Tensor

    from dpaa.graph.bipartite import BipartiteGraph
    from dpaa.methods.base import Histories, Method, Scorer, ScorerFamily, Vectors


def popularity_coordinate(graph: BipartiteGraph) -> Tensor:
    """`log(1 + d_i)` in units of its deviation; 0 for all where all items are alike.  (n_items,) float32."""
    logs = torch.log1p(graph.item_degree.double())
    deviation = logs.std(correction=0)
    return (logs / deviation if deviation > 0 else torch.zeros_like(logs)).float()


def dialled(method: Method, kappa: float, items: Tensor | None = None, histories: Histories | None = None) -> Scorer:
    """The method's scorer with the dial at κ."""
    if kappa == 0:
        return method.scorer(items, histories)
    vectors = method.vectors(items, histories)
    if vectors is not None:
        extended = DialVectors.of(method, vectors, items)
        return lambda index: extended.queries(index, kappa) @ extended.items.T
    scorer, popularity = method.scorer(items, histories), _coordinate(method, items)
    return lambda index: _turned(scorer(index), kappa, popularity)


def dialled_family(method: Method, kappas: Sequence[float]) -> Callable[[Tensor | None], ScorerFamily]:
    """Scores at every κ from one computation of the method's own."""

    def family(items: Tensor | None) -> ScorerFamily:
        scorer, popularity = method.scorer(items), _coordinate(method, items)

        def scores_of(index: Tensor) -> Iterator[Tensor]:
            plain = scorer(index)
            for kappa in kappas:
                yield _turned(plain, kappa, popularity)

        return scores_of

    return family


@dataclass(frozen=True)
class DialVectors:
    """Item vectors with the popularity coordinate, and how a query gets its own."""

    vectors: Vectors
    items: Tensor
    """(n, d + 1)"""
    covariance: Tensor
    """Of the item vectors, (d, d) float64."""

    @classmethod
    def of(cls, method: Method, vectors: Vectors, items: Tensor | None) -> DialVectors:
        """`items` are the rows of `vectors.items` among all items; None = all."""
        table = vectors.items.double()
        centred = table - table.mean(dim=0)
        extended = torch.cat([vectors.items, _coordinate(method, items)[:, None]], dim=1)
        return cls(vectors, extended, centred.T @ centred / max(len(table), 1))

    def deviation(self, queries: Tensor) -> Tensor:
        """`sd_u` of queries (b, d) → (b,) float32."""
        wide = queries.double()
        return ((wide @ self.covariance) * wide).sum(dim=1).clamp(min=0).sqrt().float()

    def queries(self, index: Tensor, kappa: float) -> Tensor:
        """Query vectors of these users at κ.  (b, d + 1)."""
        plain = self.vectors.queries(index)
        return torch.cat([plain, kappa * self.deviation(plain)[:, None]], dim=1)


def _coordinate(method: Method, items: Tensor | None) -> Tensor:
    whole = popularity_coordinate(method.graph)
    return whole if items is None else whole[items]


def _turned(scores: Tensor, kappa: float, popularity: Tensor) -> Tensor:
    """A new block of scores; the given one stays as it is."""
    if kappa == 0:
        return scores.clone()
    deviation = scores.double().std(dim=1, correction=0, keepdim=True).float()
    return torch.addcmul(scores, deviation, popularity, value=kappa)
