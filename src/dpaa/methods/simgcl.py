"""SimGCL: two noisy views of every node should agree; the fit is on a clean pass (Yu et al., SIGIR 2022).

view: E^l = A E^(l−1) + ε sign(·) v / ‖v‖,     read-out = mean of E^1 … E^L
loss = BPR + L2 + λ (InfoNCE of users + of items, one view against the other)
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from dpaa.methods.contrast import distinct, info_nce
from dpaa.methods.rows import Batch, Rows, TableRows
from dpaa.methods.settings import Settings
from dpaa.methods.views import mean_of_layers, moved, noisy_readout
from dpaa.methods.weighted_messages import WeightedMessages, WeightedMessagesSettings

NOISE = 1
"""Number of the random stream that noise is drawn from."""


class SimGCLSettings(WeightedMessagesSettings):
    """LightGCN's settings, the contrast's, and those of DPAA's weights."""

    contrast_weight: float = Field(default=0.1, ge=0)
    """λ: how much the agreement counts; 0 is LightGCN (but for layer 0)."""
    noise: float = Field(default=0.1, ge=0)
    """ε: length of the noise added to every layer of a view."""
    temperature: float = Field(default=0.2, gt=0)
    """τ of the contrast."""
    include_ego: bool = False
    """Whether layer 0 is part of the read-out."""
    message_weights: Literal["lightgcn", "dpaa"] = "lightgcn"
    """Whose weights messages carry; with `lightgcn`, settings that DPAA has too (η, δ, C …) are without effect."""


class SimGCL(WeightedMessages):
    """LightGCN with a contrast of two noisy views.  Changes: `readout`, `loss`; and what
    `WeightedMessages` does, where it is asked for.
    """

    name: ClassVar[str] = "simgcl"
    title: ClassVar[str] = "two noisy views of every node made to agree"
    paper: ClassVar[str] = "Yu et al., Are Graph Augmentations Necessary?, SIGIR 2022"
    settings_type: ClassVar[type[Settings]] = SimGCLSettings
    grid: ClassVar[dict[str, tuple[object, ...]]] = {
        "contrast_weight": (0.01, 0.05, 0.1, 0.5, 1.0),
        "noise": (0.05, 0.1, 0.2),
    }
    uses_whole_table: ClassVar[bool] = True

    settings: SimGCLSettings

    @property
    def weighs_messages(self) -> bool:
        """As set."""
        return self.settings.message_weights == "dpaa"

    def readout(self, table: Tensor, nodes: Tensor | None, batch: Batch | None) -> Tensor:
        """The mean of layers 1 … L, or of all."""
        del batch
        mean = mean_of_layers(list(self.propagation.differentiable_layers(table)), self.settings.include_ego)
        return mean if nodes is None else mean.index_select(0, nodes)

    def view(self, table: Tensor, batch: Batch, number: int, nodes: Tensor) -> Tensor:
        """A noisy read-out of these nodes, by the noise that belongs to batch and number.  (nodes, d)."""
        settings, draw = self.settings, self.device_generator(NOISE, batch.epoch, batch.number, number)
        return noisy_readout(self.propagation, table, settings.noise, draw, settings.include_ego, nodes)

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """LightGCN's, and InfoNCE over the batch's distinct users and positive items."""
        fit = super().loss(batch, rows)
        if not self.settings.contrast_weight:
            return fit
        assert isinstance(rows, TableRows)
        user, item, _ = batch.split(rows.readout)
        (users, user), (items, item) = distinct(batch.users, user), distinct(batch.positive, item)
        nodes, clean = torch.cat([users, items + self.graph.n_users]), torch.cat([user, item])
        with torch.no_grad():
            seen = [self.view(rows.table, batch, number, nodes) for number in (0, 1)]
        views = [torch.split(moved(clean, values), [len(users), len(items)]) for values in seen]
        contrast = sum(info_nce(one, two, self.settings.temperature) for one, two in zip(*views, strict=True))
        return fit + self.settings.contrast_weight * contrast
