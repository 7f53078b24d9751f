"""PAAC: a user's popular and rare items aligned, and contrasts within halves by popularity (Cai et al., KDD 2024)."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor
from torch.nn.functional import normalize

from dpaa.data.pairs import positions_within
from dpaa.methods.contrast import NoisyViews, info_nce, log_sum_exp
from dpaa.methods.graph_method import Batch, Rows, method, scores

PAIRS = 2
"""Number of the random stream of the order of pairs; that of noise is 1."""


def _item_pairs(
    users: NDArray[np.int64], items: NDArray[np.int64], counts: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of each user's items by count, the k-th of the rarer half with the k-th of the other, a middle one left out."""
    ordered = items[np.lexsort((items, counts[items], users))]
    taken = np.bincount(users)
    half = taken // 2
    first = np.repeat(np.cumsum(taken) - taken, half) + positions_within(half)
    return ordered[first], ordered[first + np.repeat(taken - half, half)]


def halves(items: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """Split some items, repeats included, by popularity: the distinct items of the rarer half and the rest."""
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
    weights = torch.tensor([1.0, cross_weight], dtype=torch.float64).log().float()
    bias = weights.repeat_interleave(torch.tensor([len(two), len(others)])).to(one.device)
    return (log_sum_exp(one, torch.cat([two, others]), temperature, bias) - scores(one, two) / temperature).mean()


@method(
    "paac",
    title="alignment of a user's popular and rare items, contrasts within popularity groups",
    paper="Cai et al., Popularity-Aware Alignment and Contrast, KDD 2024",
    grid={"alignment_weight": (0.01, 0.1, 1.0), "contrast_weight": (0.01, 0.1, 0.5)},
    wide={"popular_share": (0.2, 0.5, 0.8), "cross_weight": (0.2, 0.5, 0.8)},
)
class PAAC(NoisyViews):
    """LightGCN with an alignment and contrasts by popularity.

    loss = BPR + L2 + λ_a mean ‖p' − q'‖² + λ_c [InfoNCE(users) + γ C(popular, rare) + (1 − γ) C(rare, popular)]
    C(G, H) = mean over G of log(Σ_{c ∈ G} e^(x·y_c/τ) + β Σ_{c ∈ H} e^(x·y_c/τ)) − x·y/τ

    p and q are items of one user, a rarer and a more popular one.  x and y are two noisy views as in SimGCL; G and H
    are the rarer and the more popular half of the batch's positive items.
    """

    alignment_weight: float = Field(default=0.1, ge=0, description="λ_a: weight of the alignment")
    contrast_weight: float = Field(default=0.1, ge=0, description="λ_c: weight of the contrasts")
    popular_share: float = Field(default=0.5, ge=0, le=1, description="γ: share of the popular half's contrast")
    cross_weight: float = Field(default=0.5, ge=0, le=1, description="β: weight of negatives of the other half")
    noise: float = 0.2

    @cached_property
    def pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All pairs of items that are aligned: rarer ones, more popular ones."""
        graph = self.graph
        users, items = (part.cpu().numpy().astype(np.int64) for part in (graph.edge_user, graph.edge_item))
        return _item_pairs(users, items, graph.item_degree.double().cpu().numpy())

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """LightGCN's triples, each batch with its share of the pairs: all of them once an epoch."""
        if not self.alignment_weight:
            yield from super().batches(epoch, start)
            return
        order = np.random.default_rng([self.seed, epoch, PAIRS]).permutation(len(self.pairs[0]))
        size = -(-len(order) // self.compute.n_batches)
        for batch in super().batches(epoch, start):
            chosen = order[batch.number * size : (batch.number + 1) * size]
            yield replace(
                batch, more_items=tuple(torch.from_numpy(s[chosen]).to(self.graph.device) for s in self.pairs)
            )

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """LightGCN's, the alignment of the batch's pairs, and the contrasts of its distinct users and items."""
        total = super().loss(batch, rows)
        if batch.more_items and len(batch.more_items[0]):
            rare, popular = (normalize(side) for side in batch.split(rows.readout)[3:])
            total = total + self.alignment_weight * 2.0 * (1.0 - scores(rare, popular)).mean()  # ‖p' − q'‖²
        if not self.contrast_weight:
            return total
        items, ((one_user, one), (two_user, two)) = self.views(batch, rows)
        contrast = info_nce(one_user, two_user, self.temperature)
        rare, popular = (torch.searchsorted(items, side) for side in halves(batch.positive, self.graph.item_degree))
        for share, half, other in (
            (1.0 - self.popular_share, rare, popular),
            (self.popular_share, popular, rare),
        ):
            crossed = crossed_info_nce(one[half], two[half], two[other], self.temperature, self.cross_weight)
            contrast = contrast + share * crossed
        return total + self.contrast_weight * contrast
