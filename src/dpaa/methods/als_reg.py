"""Group regulariser: vectors of popular items near one another, and of niche items (Abdollahpouri et al., RecSys 2017).

    loss = BPR + L2 + λ Σ_g Σ_{i, j in g} ½ ‖q_i − q_j‖² / n²          groups: popular, niche

The paper adds it to a least-squares ranker to keep intra-list popularity in check; here it stands beside BPR, over the
batch's distinct items.
"""

from __future__ import annotations

from functools import cached_property

import torch
from pydantic import Field
from torch import Tensor

from dpaa.data.popularity import POPULAR_SHARE, popular_items
from dpaa.methods.base import method
from dpaa.methods.contrast import distinct
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.rows import Batch, Rows


def group_spread(rows: Tensor, popular: Tensor) -> Tensor:
    """`Σ_g (n_g Σ ‖q‖² − ‖Σ q‖²)`, the trace of QᵀLQ with L the Laplacian of "same group".  A scalar."""
    total = rows.new_zeros(())
    for group in (rows[popular], rows[~popular]):
        total = total + len(group) * group.square().sum() - group.sum(dim=0).square().sum()
    return total


@method(
    "als-reg",
    title="vectors of popular items held near one another, and those of niche items",
    paper="Abdollahpouri et al., Controlling Popularity Bias in Learning-to-Rank, RecSys 2017",
    grid={"group_weight": (1e-3, 1e-2, 0.1, 1.0)},
)
class AlsReg(GraphMethod):
    """LightGCN with a group regulariser."""

    group_weight: float = Field(
        default=0.1, ge=0, description="λ: how much the groups' closeness counts; 0 is LightGCN"
    )
    head_share: float = Field(
        default=POPULAR_SHARE, gt=0, lt=1, description="popular items cover this share of the training interactions"
    )

    @cached_property
    def popular(self) -> Tensor:
        """Which items are popular, (n_items,) bool."""
        found = popular_items(self.graph.item_degree.cpu().numpy(), self.head_share)
        return torch.from_numpy(found).to(self.graph.device)

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """LightGCN's, and the spread of the batch's items within their groups."""
        fit = super().loss(batch, rows)
        if not self.group_weight:
            return fit
        _, positive, negative = batch.split(rows.readout)
        items, vectors = distinct(torch.cat([batch.positive, batch.negative]), torch.cat([positive, negative]))
        return fit + self.group_weight * group_spread(vectors, self.popular[items]) / len(items) ** 2
