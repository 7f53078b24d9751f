"""relMF: predict relevance instead of clicks, pair by pair, by inverse propensities (Saito et al., WSDM 2020)."""

from functools import cached_property

import torch
from pydantic import Field
from torch import Tensor

from dpaa.methods._shared import propensity
from dpaa.methods.graph_method import Batch, GraphMethod, Rows, method


class InversePropensity(GraphMethod):
    """Base of methods that weight pairs by inverse propensities, θ_i = (d_i / max d)^η."""

    propensity_power: float = Field(default=0.5, ge=0, description="η: growth of propensity with degree; 0: all alike")
    propensity_floor: float = Field(default=0.05, gt=0, le=1, description="smallest propensity")

    @cached_property
    def inverse_propensity(self) -> Tensor:
        """Inverse propensity 1/θ of each item, (n_items,)."""
        return 1.0 / propensity(self.graph.item_degree, self.propensity_power, self.propensity_floor)


def _relevance_error(score: Tensor, inverse_propensity: Tensor, weight: float = 1.0) -> Tensor:
    """Error of a clicked pair; `inverse_propensity` 0 gives that of one that was not clicked.  Same shape."""
    chance = torch.sigmoid(score)
    return inverse_propensity * (1.0 - chance).square() + weight * (1.0 - inverse_propensity) * chance.square()


@method(
    "relmf",
    title="relevance predicted pair by pair, clicks weighted by inverse propensity",
    paper="Saito et al., Unbiased Recommender Learning from Missing-Not-At-Random Feedback, WSDM 2020",
    version=2,
    grid={"propensity_power": (0.0, 0.25, 0.5, 1.0)},
)
class RelMF(InversePropensity):
    """LightGCN with an unbiased squared error.

    clicked:      (1/θ_i) (1 − p)² + w (1 − 1/θ_i) p²        p = σ(s_ui),   θ_i = (d_i / max d)^η
    not clicked:  w p²
    """

    unclicked_weight: float = Field(default=1.0, gt=0, description="w: weight of the error of irrelevance")

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """Errors of the batch's positive and negative pairs, divided by the sum of their weights, and LightGCN's L2."""
        user, positive, negative = batch.split(rows.index)
        weight = self.unclicked_weight
        clicked = _relevance_error(rows.dots(user, positive), self.inverse_propensity[batch.positive], weight)
        other = _relevance_error(rows.dots(user, negative), torch.zeros_like(clicked), weight)
        return (clicked + other).mean() / (1.0 + weight) + self.l2_term(batch, rows)
