"""IPL: the same ratio of predicted hits to interactions for every item (Liu et al., SIGIR 2023)."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from dpaa.methods._shared import users_of_items
from dpaa.methods.graph_method import Batch, GraphMethod, Rows, method

ITEMS = 1
"""Number of the random stream that the items of a step are drawn from."""
LEAST = 1e-12
"""Under the root: the gradient of a deviation of 0 would be infinite."""


def hit_ratios(pair_scores: Tensor, items: Tensor, power: float) -> Tensor:
    """Ratio r of each item that occurs, from the scores of all its pairs.  (items,)."""
    _, inverse, counts = torch.unique(items, return_inverse=True, return_counts=True)
    hits = torch.zeros_like(counts, dtype=pair_scores.dtype).index_add(0, inverse, torch.sigmoid(pair_scores))
    return hits / torch.pow(counts.to(hits.dtype), 2.0 - power)


@method(
    "ipl",
    title="the same ratio of predicted hits to interactions for every item",
    paper="Liu et al., Popularity Debiasing from Exposure to Interaction, SIGIR 2023",
    grid={"evenness_weight": (0.01, 0.1, 1.0), "count_power": (1.2, 1.5, 1.8)},
)
class IPL(GraphMethod):
    """LightGCN with even hit ratios.

    C_i = Σ_{u ∈ U_i} σ(s_ui),     r_i = C_i / d_i^(2 − γ),     loss = BPR + L2 + λ sd(r)

    over the items that were taken.  Each step has some items, with all their users.
    """

    evenness_weight: float = Field(default=0.1, ge=0, description="λ: weight of the ratios' deviation; 0 is LightGCN")
    count_power: float = Field(default=1.5, ge=1, le=2, description="γ: 1: hits as interactions, 2: as many for all")
    items_per_step: int = Field(default=64, ge=2, description="items in a step")
    users_per_step: int = Field(default=4096, ge=2, description="pairs of these items at most; others are left out")

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """LightGCN's triples, with all pairs of some items, two at least."""
        taken = users_of_items(self.graph)
        known = torch.nonzero(taken.lengths).squeeze(1).cpu().numpy()
        for batch in super().batches(epoch, start):
            if not self.evenness_weight:
                yield batch
                continue
            rng = np.random.default_rng([self.seed, epoch, ITEMS, batch.number])
            items = torch.from_numpy(rng.choice(known, min(self.items_per_step, len(known)), replace=False))
            items = items.to(self.graph.device)
            fits = taken.lengths[items].cumsum(0) <= self.users_per_step
            fits[:2] = True
            items = items[fits]
            owner, users = taken.entries(items)
            yield replace(batch, more_users=(users,), more_items=(items[owner],))

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """LightGCN's, and the deviation of the items' ratios."""
        fit = super().loss(batch, rows)
        if not batch.more_items or len(torch.unique(batch.more_items[0])) < 2:
            return fit
        user, item = batch.split(rows.index)[3:]
        ratios = hit_ratios(rows.dots(user, item), batch.more_items[0], self.count_power)
        return fit + self.evenness_weight * torch.sqrt(ratios.var(correction=1) + LEAST)
