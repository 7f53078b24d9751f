"""DirectAU: bring a user and the item taken together, spread all vectors evenly (Wang et al., KDD 2022)."""

import torch
from pydantic import Field
from torch.nn.functional import normalize

from dpaa.methods import GraphMethod
from dpaa.methods.base import method


@method(
    "direct-au",
    title="vectors of a user and the item taken near each other, all spread evenly",
    paper="Wang et al., Towards Representation Alignment and Uniformity, KDD 2022",
)
class DirectAU(GraphMethod):
    """LightGCN with nearness and evenness on the unit sphere."""

    uniformity_weight: float = Field(default=1.0, ge=0, description="weight of evenness beside nearness (gamma)")

    def loss(self, batch, rows):
        """`mean ‖u − i‖² + γ/2 (uniformity of users + of items)`, and LightGCN's L2."""
        user, item, _ = (normalize(part) for part in batch.split(rows.readout))
        uniform = sum(torch.pdist(side).square().mul(-2).exp().mean().log() for side in (user, item))
        near = (user - item).square().sum(dim=1).mean()
        return near + self.uniformity_weight / 2 * uniform + self.l2_term(batch, rows)
