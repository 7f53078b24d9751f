"""PAAC: a user's popular and rare items brought together, and contrasts by halves (Cai et al., KDD 2024).

    loss = BPR + L2 + λ_a mean ‖p' − q'‖² + λ_c [InfoNCE(users) + γ C(popular, rare) + (1 − γ) C(rare, popular)]
    C(G, H) = mean over G of log(Σ_{c ∈ G} e^(x·y_c/τ) + β Σ_{c ∈ H} e^(x·y_c/τ)) − x·y/τ

p and q are items of one user, a rarer and a more popular one: what they have in common teaches the rare one.  x and y
are two noisy views as in SimGCL; G and H are the rarer and the more popular half of the batch's positive items.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor
from torch.nn.functional import normalize

from dpaa.methods.base import method
from dpaa.methods.contrast import distinct, info_nce, log_sum_exp, mean_of_layers, moved, noisy_readout
from dpaa.methods.graph_method import WholeTable
from dpaa.methods.rows import Batch, Rows, TableRows, scores

NOISE, PAIRS = 1, 2
"""Numbers of the random streams that noise and the order of pairs are drawn from."""


@dataclass(frozen=True)
class BatchWithItemPairs(Batch):
    """Triples, and pairs of items that one user took, the rarer first; each (pairs,)."""

    rare: Tensor
    popular: Tensor

    def nodes(self, n_users: int) -> Tensor:
        """The triples' nodes, then those of the pairs."""
        return torch.cat([super().nodes(n_users), self.rare + n_users, self.popular + n_users])

    def split(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Rows of users, positive and negative items, then of the rarer and the more popular ones of the pairs."""
        size, pairs = len(self), len(self.rare)
        return torch.split(rows, [size, size, size, pairs, pairs])


def item_pairs(
    users: NDArray[np.int64], items: NDArray[np.int64], counts: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of each user's items by count, the k-th of the rarer half with the k-th of the other, a middle one aside."""
    order = np.lexsort((items, counts[items], users))
    ordered = items[order]
    taken = np.bincount(users)
    half = taken // 2
    first = np.concatenate([[0], np.cumsum(taken)[:-1]])
    place = np.arange(half.sum()) - np.repeat(np.cumsum(half) - half, half)
    start = np.repeat(first, half) + place
    return ordered[start], ordered[start + np.repeat(taken - half, half)]


def halves(items: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """The distinct ones of some items, repeats included, in two: the rarer half of the list and the rest."""
    ordered = torch.sort(items).values
    ordered = ordered[torch.argsort(counts[ordered], stable=True)]
    popular = torch.unique(ordered[len(items) // 2 :])
    rare = torch.unique(ordered[: len(items) // 2])
    return rare[~torch.isin(rare, popular)], popular


def crossed_info_nce(one: Tensor, two: Tensor, others: Tensor, temperature: float, cross_weight: float) -> Tensor:
    """InfoNCE in which rows of `others` are negatives too, each counting `cross_weight`.  A scalar, 0 without rows."""
    if not len(one):
        return one.sum()
    one, two, others = normalize(one), normalize(two), normalize(others)
    own = torch.sum(one * two, dim=1) / temperature
    if not cross_weight or not len(others):
        return (log_sum_exp(one, two, temperature) - own).mean()
    bias = torch.zeros(len(two) + len(others), device=one.device)
    bias[len(two) :] = math.log(cross_weight)
    return (log_sum_exp(one, torch.cat([two, others]), temperature, bias) - own).mean()


@method(
    "paac",
    title="a user's popular and rare items brought together, contrasts within halves by popularity",
    paper="Cai et al., Popularity-Aware Alignment and Contrast, KDD 2024",
    grid={
        "alignment_weight": (0.01, 0.1, 1.0),
        "contrast_weight": (0.01, 0.1, 0.5),
    },
    wide={
        "popular_share": (0.2, 0.5, 0.8),
        "cross_weight": (0.2, 0.5, 0.8),
    },
)
class PAAC(WholeTable):
    """LightGCN with an alignment and contrasts by popularity."""

    alignment_weight: float = Field(
        default=0.1, ge=0, description="λ_a: how much a user's popular and rare items are brought together"
    )
    contrast_weight: float = Field(
        default=0.1, ge=0, description="λ_c: how much the contrasts count; with both 0 it is LightGCN (but for layer 0)"
    )
    popular_share: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="γ: what the popular half's contrast counts; the rare half's counts the rest",
    )
    cross_weight: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="β: how much items of the other half count as negatives; 1 treats both halves alike",
    )
    noise: float = Field(default=0.2, ge=0, description="ε: length of the noise added to every layer of a view")
    temperature: float = Field(default=0.2, gt=0, description="τ of the contrasts")
    include_ego: bool = Field(default=False, description="whether layer 0 is part of the read-out")

    @cached_property
    def pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All pairs of items that the alignment brings together: rarer ones, more popular ones."""
        graph = self.graph
        users, items = (part.cpu().numpy().astype(np.int64) for part in (graph.edge_user, graph.edge_item))
        return item_pairs(users, items, graph.item_degree.double().cpu().numpy())

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """LightGCN's triples, with the epoch's share of the pairs: all of them once an epoch."""
        if not self.alignment_weight:
            yield from super().batches(epoch, start)
            return
        rare, popular = self.pairs
        order = np.random.default_rng([self.seed, epoch, PAIRS]).permutation(len(rare))
        size = -(-len(rare) // self.compute.n_batches)
        for batch in super().batches(epoch, start):
            chosen = order[batch.number * size : (batch.number + 1) * size]
            two = (torch.from_numpy(side[chosen]).to(self.graph.device) for side in (rare, popular))
            triple = (batch.users, batch.positive, batch.negative)
            yield BatchWithItemPairs(*triple, *two, epoch=epoch, number=batch.number)

    def table_readout(self, table: Tensor, nodes: Tensor | None, batch: Batch | None) -> Tensor:
        """The mean of layers 1 … L, or of all."""
        del batch
        mean = mean_of_layers(list(self.tables.propagation.differentiable_layers(table)), self.include_ego)
        return mean if nodes is None else mean.index_select(0, nodes)

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """LightGCN's, the alignment of the batch's pairs, and the contrasts of its distinct users and items."""
        total = super().loss(batch, rows)
        if isinstance(batch, BatchWithItemPairs) and len(batch.rare):
            rare, popular = (normalize(side) for side in batch.split(rows.readout)[3:])
            total = total + self.alignment_weight * 2.0 * (1.0 - scores(rare, popular)).mean()  # ‖p' − q'‖²
        if self.contrast_weight:
            total = total + self.contrast_weight * self._contrast(batch, rows)
        return total

    def _contrast(self, batch: Batch, rows: Rows) -> Tensor:
        assert isinstance(rows, TableRows)
        n_users = self.graph.n_users
        user, item, *_ = batch.split(rows.readout)
        (users, user), (items, item) = distinct(batch.users, user), distinct(batch.positive, item)
        nodes, clean = torch.cat([users, items + n_users]), torch.cat([user, item])
        views = []
        for number in (0, 1):
            draw = self.generator(NOISE, batch.epoch, batch.number, number)
            how = (self.noise, draw, self.include_ego, nodes)
            with torch.no_grad():
                values = noisy_readout(self.tables.propagation, rows.table, *how)
            views.append(torch.split(moved(clean, values), [len(users), len(items)]))
        (one_user, one), (two_user, two) = views
        found = info_nce(one_user, two_user, self.temperature)
        rare, popular = (torch.searchsorted(items, side) for side in halves(batch.positive, self.graph.item_degree))
        shares = (1.0 - self.popular_share, self.popular_share)
        for share, mine, beside in zip(shares, (rare, popular), (popular, rare), strict=True):
            if share:
                crossed = (one[mine], two[mine], two[beside], self.temperature, self.cross_weight)
                found = found + share * crossed_info_nce(*crossed)
        return found
