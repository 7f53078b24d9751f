"""Reg: scores of positive items must not follow their popularity (Zhu et al., WSDM 2021).

loss = BPR + L2 + w corr(s_ui, d_i)²          over the batch's positive pairs
"""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

from pydantic import Field
from torch import Tensor

from dpaa.methods.backbone import GraphMethod
from dpaa.methods.losses import squared_correlation
from dpaa.methods.rows import Batch, Rows
from dpaa.methods.settings import Settings, TrainedSettings


class RegSettings(TrainedSettings):
    """LightGCN's settings and the weight of the correlation."""

    correlation_weight: float = Field(default=0.1, ge=0)
    """w: how much the squared correlation counts; 0 is LightGCN."""


class Reg(GraphMethod):
    """LightGCN with a correlation term.  Changes: `loss`."""

    name: ClassVar[str] = "reg"
    title: ClassVar[str] = "scores of positive items made independent of their popularity"
    paper: ClassVar[str] = "Zhu et al., Popularity-Opportunity Bias in Collaborative Filtering, WSDM 2021"
    settings_type: ClassVar[type[Settings]] = RegSettings
    grid: ClassVar[dict[str, tuple[object, ...]]] = {"correlation_weight": (0.01, 0.1, 0.5, 1.0)}

    settings: RegSettings

    @cached_property
    def item_popularity(self) -> Tensor:
        """Counts as a share of the largest (correlation knows no scale), (n_items,)."""
        return self.graph.item_degree / self.graph.item_degree.max()

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """LightGCN's, and the squared correlation of score and popularity."""
        fit = super().loss(batch, rows)
        if not self.settings.correlation_weight:
            return fit
        user, positive, _ = batch.split(rows.places)
        follows = squared_correlation(self.item_popularity[batch.positive], rows.dots(user, positive))
        return fit + self.settings.correlation_weight * follows
