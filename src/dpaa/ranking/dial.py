"""The popularity dial: shifts lists towards popular or niche items at query time, for any method.

    score'(u, i) = score(u, i) + κ · sd_u · p_i,     p_i = log(1 + d_i) / sd(log(1 + d))

`d` are training counts.  Both deviations are over all items, also where only some may be recommended: what κ means
depends neither on the candidates nor on an allow list.  κ > 0 pushes popularity up, κ < 0 down, 0 is the method itself.

Where a method ranks by an inner product the dial is one more coordinate: `p_i` of an item, `κ · sd_u` of a query, with
`sd_u = √(uᵀ C u)` and C the covariance of the item vectors.  One index of item vectors serves every κ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods.base import Histories, Method, Scorer, ScorerFamilies, ScorerFamily

BLOCK_ROWS = 65_536
"""Item vectors that are widened to float64 at once."""
BLOCK_SCORES = 4_000_000
"""Scores over all items that are held at once where only some of the items are scored."""


def _popularity_coordinate(graph: BipartiteGraph, items: Tensor | None = None) -> Tensor:
    """`log(1 + d_i)` in units of its deviation over all items; 0 where all are alike.  (items,) float32.

    Parameters
    ----------
    graph : the training pairs
    items : indices of the items wanted, all by default

    Returns
    -------
    (items,)
    """
    logs = torch.log1p(graph.item_degree.double())
    if logs.min() == logs.max():  # their computed deviation may be a rounding error instead of 0
        logs.zero_()
    else:
        logs = logs / logs.std(correction=0)
    return logs.float() if items is None else logs.float()[items]


def dialled(
    method: Method,
    kappa: float,
    items: Tensor | None = None,
    histories: Histories | None = None,
    prepared: DialVectors | None = None,
) -> Scorer:
    """The method's scorer with the dial at κ; at 0 it is the method's own, bit for bit.

    `prepared` spares a method with vectors the making of `DialVectors.of` at every call.
    """
    if kappa == 0:
        return method.scorer(items, histories)
    vectors = method.vectors(None, histories)
    if vectors is not None:
        extended = prepared or DialVectors.of(method)
        assert extended is not None
        queries, table = vectors.queries, extended.items if items is None else extended.items.index_select(0, items)
        return lambda index: extended.queries(queries(index), kappa) @ table.T
    scored, popularity = _scores_and_deviations(method, items, histories), _popularity_coordinate(method.graph, items)
    return lambda index: _turned(*scored(index), kappa, popularity)


def dialled_family(method: Method, kappas: Sequence[float]) -> ScorerFamilies:
    """Scores at every κ from one computation of the method's own."""

    def family(items: Tensor | None) -> ScorerFamily:
        scored, popularity = _scores_and_deviations(method, items), _popularity_coordinate(method.graph, items)

        def scores_of(index: Tensor) -> Iterator[Tensor]:
            plain, deviation = scored(index)
            for kappa in kappas:
                yield _turned(plain, deviation, kappa, popularity)

        return scores_of

    return family


@dataclass(frozen=True)
class DialVectors:
    """All item vectors with the popularity coordinate, and how a query gets its own: for every user and every κ."""

    items: Tensor
    """(n_items, d + 1)"""
    covariance: Tensor
    """Of the item vectors, (d, d) float64."""

    @classmethod
    def of(cls, method: Method) -> DialVectors | None:
        """Prepare a method's vectors; None where it ranks by anything else than an inner product."""
        vectors = method.vectors()
        if vectors is None:
            return None
        coordinate = _popularity_coordinate(method.graph)
        return cls(torch.cat([vectors.items, coordinate[:, None]], dim=1), _covariance(vectors.items))

    def deviation(self, queries: Tensor) -> Tensor:
        """Compute `sd_u` of queries: (b, d) → (b,) float32."""
        return _deviation_of_products(queries, self.covariance)

    def queries(self, plain: Tensor, kappa: float) -> Tensor:
        """Queries (b, d) with their coordinate at κ.  (b, d + 1)."""
        return torch.cat([plain, kappa * self.deviation(plain)[:, None]], dim=1)


def _covariance(table: Tensor) -> Tensor:
    """Covariance of the rows, about their mean: what all rows have in common takes no digits from it."""
    mean = table.mean(dim=0, dtype=torch.float64)
    total = torch.zeros(table.shape[1], table.shape[1], dtype=torch.float64, device=table.device)
    for part in torch.split(table, BLOCK_ROWS):
        centred = part.double() - mean
        total += centred.T @ centred
    return total / len(table)


def _deviation_of_products(queries: Tensor, covariance: Tensor) -> Tensor:
    wide = queries.double()
    return ((wide @ covariance) * wide).sum(dim=1).clamp(min=0).sqrt().float()


def _scores_and_deviations(
    method: Method, items: Tensor | None = None, histories: Histories | None = None
) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """A function from users to their scores over `items`, (b, items), and the deviation over all items, (b,)."""
    # With vectors the deviation over all items comes from their covariance, whatever items are scored.
    vectors = method.vectors(None, histories)
    if vectors is not None:
        scorer, covariance = method.scorer(items, histories), _covariance(vectors.items)
        return lambda index: (scorer(index), _deviation_of_products(vectors.queries(index), covariance))
    whole = method.scorer(None, histories)
    if items is None:
        return lambda index: _with_deviation(whole(index))
    step = max(1, BLOCK_SCORES // method.graph.n_items)

    def some(index: Tensor) -> tuple[Tensor, Tensor]:
        blocks = (_with_deviation(whole(part)) for part in torch.split(index, step))
        scores, deviations = zip(*((scores[:, items], deviation) for scores, deviation in blocks), strict=True)
        return torch.cat(scores), torch.cat(deviations)

    return some


def _with_deviation(scores: Tensor) -> tuple[Tensor, Tensor]:
    """The scores and their deviation by row: two passes, five times as fast as `std`, rounding of the mean taken off.

    Over the items that have a score: another system's lists have −inf elsewhere.
    """
    there = scores > -torch.inf
    if not there.all():
        n = there.sum(dim=1, keepdim=True).clamp(min=1)
        centred = torch.where(there, scores - torch.where(there, scores, 0.0).sum(dim=1, keepdim=True) / n, 0.0)
        rest = centred.sum(dim=1) / n[:, 0]
        return scores, (centred.square_().sum(dim=1) / n[:, 0] - rest.square()).clamp(min=0).sqrt()
    centred = scores - scores.mean(dim=1, keepdim=True)
    rest = centred.mean(dim=1)
    return scores, (centred.square_().mean(dim=1) - rest.square()).clamp(min=0).sqrt()


def _turned(scores: Tensor, deviation: Tensor, kappa: float, popularity: Tensor) -> Tensor:
    """A new block of scores; the given one stays as it is.  Popularity is (items,) or (users, items)."""
    if kappa == 0:
        return scores.clone()
    return torch.addcmul(scores, deviation[:, None], popularity, value=kappa)


def dialled_lists(scores: Tensor, items: Tensor, graph: BipartiteGraph, kappa: float) -> Tensor:
    """The dial over lists, in units of the deviation of the listed items' scores.

    Parameters
    ----------
    scores, items : (users, n), −inf where a list has ended; item indices, anything there
    graph : the training pairs
    kappa : κ

    Returns
    -------
    (users, n) float32, as the scores of a model are
    """
    return _turned(*_with_deviation(scores.float()), kappa, _popularity_coordinate(graph, items.clamp(min=0)))
