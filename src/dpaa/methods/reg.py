"""Reg: scores of positive items must not follow their popularity (Zhu et al., WSDM 2021).

loss = BPR + L2 + w corr(s_ui, d_i)²          over the batch's positive pairs
"""

from __future__ import annotations

from functools import cached_property

from pydantic import Field
from torch import Tensor

from dpaa.methods.base import method
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.rows import Batch, Rows, squared_correlation


@method(
    "reg",
    title="scores of positive items made independent of their popularity",
    paper="Zhu et al., Popularity-Opportunity Bias in Collaborative Filtering, WSDM 2021",
    grid={"correlation_weight": (0.01, 0.1, 0.5, 1.0)},
)
class Reg(GraphMethod):
    """LightGCN with a correlation term."""

    correlation_weight: float = Field(
        default=0.1, ge=0, description="w: how much the squared correlation counts; 0 is LightGCN"
    )

    @cached_property
    def item_popularity(self) -> Tensor:
        """Counts as a share of the largest (correlation knows no scale), (n_items,)."""
        return self.graph.item_degree / self.graph.item_degree.max()

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """LightGCN's, and the squared correlation of score and popularity."""
        fit = super().loss(batch, rows)
        if not self.correlation_weight:
            return fit
        user, positive, _ = batch.split(rows.places)
        follows = squared_correlation(self.item_popularity[batch.positive], rows.dots(user, positive))
        return fit + self.correlation_weight * follows
