"""DirectAU: bring a user and the item taken together, spread users and items evenly (Wang et al., KDD 2022).

    loss = mean ‖u' − i'‖² + γ/2 (uniformity of users + of items) + L2,     vectors at length 1

No negative items are needed: that the vectors of a batch keep apart does their work.
"""

from __future__ import annotations

from pydantic import Field
from torch import Tensor
from torch.nn.functional import normalize

from dpaa.methods.base import method
from dpaa.methods.contrast import uniformity
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.rows import Batch, Rows


@method(
    "directau",
    title="a user and the item taken brought together, all vectors spread evenly",
    paper="Wang et al., Towards Representation Alignment and Uniformity, KDD 2022",
    grid={"uniformity_weight": (0.2, 0.5, 1.0, 2.0, 5.0)},
)
class DirectAU(GraphMethod):
    """LightGCN with nearness and evenness on the unit sphere."""

    uniformity_weight: float = Field(
        default=1.0,
        ge=0,
        description="γ: how much evenness counts beside nearness; too little and all vectors fall together",
    )

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """Nearness, evenness of the batch's rows (repeats included), and L2 of the rows they are made of."""
        user, item, _ = (normalize(part) for part in batch.split(rows.readout))
        near = (user - item).square().sum(dim=1).mean()
        l2 = (self.l2 / len(batch)) * rows.half_squares(2 * len(batch))
        if not self.uniformity_weight:
            return near + l2
        return near + self.uniformity_weight / 2 * (uniformity(user) + uniformity(item)) + l2
