"""SAM-REG: balanced negative items, and no correlation between margin and popularity (Boratto et al., IP&M 2021)."""

from functools import cached_property
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import softplus

from dpaa.methods._shared import capped_inverse, squared_correlation
from dpaa.methods.graph_method import Batch, GraphMethod, Rows, method
from dpaa.methods.samplers import BalancedSampler, TripleSampler


@method(
    "sam-reg",
    title="balanced negatives; margins made independent of popularity",
    paper="Boratto et al., Connecting User and Item Perspectives in Popularity Debiasing, IP&M 2021",
    grid={"correlation_weight": (0.01, 0.05, 0.1, 0.2, 0.5, 0.9)},
    wide={"popularity": ("count", "capped_inverse"), "negatives": ("balanced", "uniform")},
)
class SAMReg(GraphMethod):
    """LightGCN with another sampler and a correlation term.

    loss = (1 − λ) (BPR + L2) + λ corr(pop_i, σ(s_ui − s_uj))²

    The negative item is, by a fair coin, more or less popular than the positive one.
    """

    correlation_weight: float = Field(default=0.05, ge=0, le=1, description="λ: share of the correlation in the loss")

    popularity: Literal["count", "capped_inverse"] = Field(
        default="count", description="what the margin must not follow: training counts, or IPS's weights (public ports)"
    )
    negatives: Literal["balanced", "uniform"] = Field(
        default="balanced", description="negative items: balanced by popularity, or uniform (public ports)"
    )

    @property
    def sampler_type(self) -> type[TripleSampler]:
        """Negative items balanced by popularity, unless set otherwise."""
        return BalancedSampler if self.negatives == "balanced" else TripleSampler

    @cached_property
    def item_popularity(self) -> Tensor:
        """Counts as a share of the largest (correlation knows no scale), or IPS's weights.  (n_items,)."""
        counts = self.graph.item_degree
        return counts / counts.max() if self.popularity == "count" else capped_inverse(counts, 0.5)

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """LightGCN's loss, and the squared correlation of margin and popularity."""
        margin, share = rows.margins(len(batch)), self.correlation_weight
        correlation = squared_correlation(self.item_popularity[batch.positive], torch.sigmoid(margin))
        fit = softplus(-margin).mean() + self.l2_term(batch, rows)
        return (1.0 - share) * fit + share * correlation
