"""GCF-logdet: keep the vectors from falling into few directions, by the LogDet divergence of their covariance.

    loss = BPR + L2 + w (D(C_users) + D(C_items)),     D(C) = tr C − log det C − d,     C = (d / n) X'ᵀX'

X' are the batch's distinct read-out rows at length 1.  D is 0 where all directions are used alike.  What is public of
it is a port to sequences; on this backbone the fit stays BPR (docs/deviations.md).
"""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import normalize

from dpaa.methods.base import method
from dpaa.methods.contrast import distinct
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.rows import Batch, Rows

RIDGE = 1e-6
"""On the diagonal of C: fewer rows than columns would leave its determinant 0."""


def log_det_divergence(covariance: Tensor) -> Tensor:
    """`tr C − log det C − d`, at least 0 and 0 for the identity.  A scalar."""
    log_det: Tensor = torch.linalg.slogdet(covariance).logabsdet
    return torch.trace(covariance) - log_det - len(covariance)


def spread(rows: Tensor) -> Tensor:
    """Covariance of rows at length 1, scaled to trace d, in float64.  (d, d)."""
    unit = normalize(rows.double())
    n, d = unit.shape
    return (d / n) * (unit.T @ unit) + RIDGE * torch.eye(d, dtype=unit.dtype, device=unit.device)


@method(
    "gcf-logdet",
    title="vectors kept from falling into few directions, by a LogDet divergence",
    paper="Zhang et al., Mitigating the Popularity Bias of Graph Collaborative Filtering, NeurIPS 2023",
    grid={"divergence_weight": (1e-4, 1e-3, 1e-2, 0.1)},
)
class GcfLogdet(GraphMethod):
    """LightGCN with a divergence of its directions from evenness."""

    divergence_weight: float = Field(
        default=1e-3, ge=0, description="w: how much the directions' evenness counts; 0 is LightGCN"
    )

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """LightGCN's, and the divergence of users and of positive items."""
        fit = super().loss(batch, rows)
        if not self.divergence_weight:
            return fit
        user, item, _ = batch.split(rows.readout)
        far = [log_det_divergence(spread(distinct(*side)[1])) for side in ((batch.users, user), (batch.positive, item))]
        return fit + (self.divergence_weight * (far[0] + far[1])).float()
