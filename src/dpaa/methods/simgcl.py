"""SimGCL: two noisy views of every node should agree; the fit is on a clean pass (Yu et al., SIGIR 2022).

view: E^l = A E^(l−1) + ε sign(·) v / ‖v‖,     read-out = mean of E^1 … E^L
loss = BPR + L2 + λ (InfoNCE of users + of items, one view against the other)
"""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from dpaa.methods.base import method
from dpaa.methods.contrast import distinct, info_nce, mean_of_layers, moved, noisy_readout
from dpaa.methods.graph_method import WholeTable
from dpaa.methods.rows import Batch, Rows, TableRows
from dpaa.methods.weighted_messages import WeightedMessages

NOISE = 1
"""Number of the random stream that noise is drawn from."""


@method(
    "simgcl",
    title="two noisy views of every node made to agree",
    paper="Yu et al., Are Graph Augmentations Necessary?, SIGIR 2022",
    grid={
        "contrast_weight": (0.01, 0.05, 0.1, 0.5, 1.0),
        "noise": (0.05, 0.1, 0.2),
    },
)
class SimGCL(WholeTable, WeightedMessages):
    """LightGCN with a contrast of two noisy views."""

    contrast_weight: float = Field(
        default=0.1, ge=0, description="λ: how much the agreement counts; 0 is LightGCN (but for layer 0)"
    )
    noise: float = Field(default=0.1, ge=0, description="ε: length of the noise added to every layer of a view")
    temperature: float = Field(default=0.2, gt=0, description="τ of the contrast")
    include_ego: bool = Field(default=False, description="whether layer 0 is part of the read-out")
    message_weights: Literal["lightgcn", "dpaa"] = Field(
        default="lightgcn",
        description=(
            "whose weights messages carry; with `lightgcn`, those that DPAA has too (η, δ, C …) have no effect"
        ),
    )

    @property
    def weighs_messages(self) -> bool:
        """As set."""
        return self.message_weights == "dpaa"

    def table_readout(self, table: Tensor, nodes: Tensor | None, batch: Batch | None) -> Tensor:
        """The mean of layers 1 … L, or of all."""
        del batch
        mean = mean_of_layers(list(self.tables.propagation.differentiable_layers(table)), self.include_ego)
        return mean if nodes is None else mean.index_select(0, nodes)

    def view(self, table: Tensor, batch: Batch, number: int, nodes: Tensor) -> Tensor:
        """A noisy read-out of these nodes, by the noise that belongs to batch and number.  (nodes, d)."""
        draw = self.generator(NOISE, batch.epoch, batch.number, number)
        return noisy_readout(self.tables.propagation, table, self.noise, draw, self.include_ego, nodes)

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """LightGCN's, and InfoNCE over the batch's distinct users and positive items."""
        fit = super().loss(batch, rows)
        if not self.contrast_weight:
            return fit
        assert isinstance(rows, TableRows)
        user, item, _ = batch.split(rows.readout)
        (users, user), (items, item) = distinct(batch.users, user), distinct(batch.positive, item)
        nodes, clean = torch.cat([users, items + self.graph.n_users]), torch.cat([user, item])
        with torch.no_grad():
            seen = [self.view(rows.table, batch, number, nodes) for number in (0, 1)]
        views = [torch.split(moved(clean, values), [len(users), len(items)]) for values in seen]
        contrast = sum(info_nce(one, two, self.temperature) for one, two in zip(*views, strict=True))
        return fit + self.contrast_weight * contrast
