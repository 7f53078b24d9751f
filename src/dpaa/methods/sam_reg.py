"""SAM-REG: balanced negative items, and no correlation between margin and popularity (Boratto et al., IP&M 2021)."""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import softplus

from dpaa.methods._popularity import squared_correlation
from dpaa.methods.base import method
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.samplers import BalancedSampler, TripleSampler
from dpaa.methods.tables import Batch, Rows


@method(
    "sam-reg",
    title="balanced negatives; margins made independent of popularity",
    paper="Boratto et al., Connecting User and Item Perspectives in Popularity Debiasing, IP&M 2021",
    default_candidate=True,
    grid={"correlation_weight": (0.01, 0.05, 0.1, 0.2, 0.5, 0.9)},
)
class SAMReg(GraphMethod):
    """LightGCN with another sampler and a correlation term.

    loss = (1 − λ) (BPR + L2) + λ corr(pop_i, σ(s_ui − s_uj))²

    The negative item is, by a fair coin, more or less popular than the positive one.
    """

    correlation_weight: float = Field(default=0.05, ge=0, le=1, description="λ: share of the correlation in the loss")

    @property
    def sampler_type(self) -> type[TripleSampler]:
        """Negative items balanced by popularity."""
        return BalancedSampler

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """LightGCN's loss, and the squared correlation of margin and popularity."""
        margin, share = rows.margins(len(batch)), self.correlation_weight
        popularity = self.graph.item_degree / self.graph.item_degree.max()  # correlation knows no scale
        correlation = squared_correlation(popularity[batch.positive], torch.sigmoid(margin))
        fit = softplus(-margin).mean() + self.l2_term(batch, rows)
        return (1.0 - share) * fit + share * correlation
