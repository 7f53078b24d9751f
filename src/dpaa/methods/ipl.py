"""IPL: the same ratio of predicted hits to interactions for every item (Liu et al., SIGIR 2023).

    C_i = Σ_{u ∈ U_i} σ(s_ui),     r_i = C_i / d_i^(2 − γ),     loss = BPR + L2 + λ sd(r)

over the items that were taken.  Each step looks at some items, with all their users.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from dpaa.graph.cooccurrence import Lists
from dpaa.methods._popularity import users_of_items
from dpaa.methods.base import method
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.rows import Batch, Rows

LOOKED_AT = 1
"""Number of the random stream that the items of a step are drawn from."""
LEAST = 1e-12
"""Under the root: the gradient of a deviation of 0 would be infinite."""


@dataclass(frozen=True)
class BatchWithPairs(Batch):
    """Triples, and all training pairs of some items; each of the two (pairs,) int64."""

    pair_users: Tensor
    pair_items: Tensor

    def nodes(self, n_users: int) -> Tensor:
        """The triples' nodes, then those of the pairs."""
        return torch.cat([super().nodes(n_users), self.pair_users, self.pair_items + n_users])

    def split(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Rows of users, positive and negative items, then of the pairs' users and items."""
        size, pairs = len(self), len(self.pair_users)
        return torch.split(rows, [size, size, size, pairs, pairs])


def hit_ratios(pair_scores: Tensor, items: Tensor, power: float) -> Tensor:
    """Ratio r of each item that occurs, from the scores of all its pairs.  (items,)."""
    _, place, counts = torch.unique(items, return_inverse=True, return_counts=True)
    hits = torch.zeros_like(counts, dtype=pair_scores.dtype).index_add(0, place, torch.sigmoid(pair_scores))
    return hits / torch.pow(counts.to(hits.dtype), 2.0 - power)


def deviation(values: Tensor) -> Tensor:
    """About the mean, over n − 1.  A scalar."""
    return torch.sqrt(values.var(correction=1) + LEAST)


@method(
    "ipl",
    title="the same ratio of predicted hits to interactions for every item",
    paper="Liu et al., Popularity Debiasing from Exposure to Interaction, SIGIR 2023",
    grid={
        "evenness_weight": (0.01, 0.1, 1.0),
        "count_power": (1.2, 1.5, 1.8),
    },
)
class IPL(GraphMethod):
    """LightGCN with even hit ratios."""

    evenness_weight: float = Field(
        default=0.1, ge=0, description="λ: how much the deviation of the ratios counts; 0 is LightGCN"
    )
    count_power: float = Field(
        default=1.5,
        ge=1,
        le=2,
        description="γ: 1 wants hits in proportion to interactions, 2 the same number for every item",
    )
    items_per_step: int = Field(default=64, ge=2, description="how many items are looked at in a step")
    users_per_step: int = Field(
        default=4096,
        ge=2,
        description="how many pairs of theirs at most; an item that would be beyond is left for another step",
    )

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """LightGCN's triples, with the pairs of some items."""
        taken = users_of_items(self.graph)
        known = torch.nonzero(taken.lengths).squeeze(1).cpu().numpy()
        for batch in super().batches(epoch, start):
            if not self.evenness_weight:
                yield batch
                continue
            rng = np.random.default_rng([self.seed, epoch, LOOKED_AT, batch.number])
            chosen = torch.from_numpy(rng.choice(known, min(self.items_per_step, len(known)), replace=False))
            pairs = self._pairs(taken, chosen.to(self.graph.device))
            triple = (batch.users, batch.positive, batch.negative)
            yield BatchWithPairs(*triple, *pairs, epoch=epoch, number=batch.number)

    def _pairs(self, taken: Lists, items: Tensor) -> tuple[Tensor, Tensor]:
        """Users and items of all pairs of these items, as far as they are not too many; two items at least."""
        room = taken.lengths[items].cumsum(0) <= self.users_per_step
        room[:2] = True
        items = items[room]
        owner, users = taken.entries(items)
        return users, items[owner]

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """LightGCN's, and the deviation of the items' ratios."""
        fit = super().loss(batch, rows)
        if not isinstance(batch, BatchWithPairs) or len(torch.unique(batch.pair_items)) < 2:
            return fit
        user, item = batch.split(rows.places)[3:]
        ratios = hit_ratios(rows.dots(user, item), batch.pair_items, self.count_power)
        return fit + self.evenness_weight * deviation(ratios)
