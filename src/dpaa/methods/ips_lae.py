"""IPS-LAE: EASE with target items weighted by inverse log-sigmoid propensities (Onishi et al., SIGIR-AP 2025)."""

import torch
from pydantic import Field

from dpaa.methods._shared import users_of_items
from dpaa.methods.base import method
from dpaa.methods.ease import EASE


@method(
    "ips-lae",
    title="EASE with scores divided by a propensity of the item's count",
    paper="Onishi et al., Accurate and Diverse Recommendations via Propensity-Weighted Linear Autoencoders, 2025",
    seeded=False,
    grid={"ridge": (100.0, 200.0, 700.0, 1600.0), "propensity_slope": (0.1, 0.4, 0.7, 0.8)},
)
class IPSLAE(EASE):
    """EASE whose targets are weighted by inverse propensities.

    p_i = σ(β (log(n_i + 1) − m)),     scores = R B diag(1 / p)

    n_i is the item's training count and m the middle between the smallest and the largest log(n + 1), where p is ½.
    Among very popular items p is near 1, so that these are hardly told apart.  A weighted target scales a column of B.
    """

    propensity_slope: float = Field(default=0.7, ge=0, description="β: how steeply propensity grows with log counts")

    def learn(self) -> None:
        """EASE's map, its columns divided by the propensities."""
        super().learn()
        count = users_of_items(self.graph).lengths
        level = torch.log1p(count.double())
        low, high = level[count > 0].aminmax()  # items never taken have a column of zeros, whatever their weight
        self.item_map /= torch.sigmoid(self.propensity_slope * (level - 0.5 * (low + high))).float()
