"""NAVIP: weight each message by the inverse propensity of its item (Kim et al., CIKM 2022)."""

from functools import cached_property
from typing import Literal

import torch
from pydantic import Field

from dpaa.graph.bipartite import EdgeWeights
from dpaa.methods.graph_method import GraphMethod, method


@method(
    "navip",
    title="messages weighted by inverse propensity of the item",
    paper="Kim et al., Debiasing Neighbor Aggregation for Graph Neural Network in Recommender, CIKM 2022",
    grid={"propensity_power": (0.25, 0.5, 0.75, 1.0)},
    wide={
        "smallest_propensity": (1e-3, 1e-2, 1e-1),
        "normalisation": ("symmetric", "row", "lightgcn-times-ip"),
        "applied": ("training", "inference"),
    },
)
class NAVIP(GraphMethod):
    """LightGCN with static, count-based message weights.

    p_i = (d_i / max d)^η,   W_i = 1 / max(p_i, p_min),   Ŵ_ui = W_i / √(S_u S_i),   S = sums of W over a node's edges

    No public code and only the abstract was available: the formula is our interpretation, see docs/deviations.md.
    """

    propensity_power: float = Field(default=0.5, ge=0, description="η: growth of propensity with degree; 0 is LightGCN")
    smallest_propensity: float = Field(default=0.01, ge=0, le=1, description="p_min: smallest propensity; 0: no bound")
    normalisation: Literal["symmetric", "row", "lightgcn-times-ip"] = Field(
        default="symmetric", description="by both ends' sums, to a sum of 1 per user, or by degrees alone"
    )
    applied: Literal["training", "inference"] = Field(
        default="training", description="whether the weights are applied in training, or only after LightGCN's training"
    )

    _trains_as_lightgcn = False

    def edge_weights(self, layer: int) -> EdgeWeights:
        """Inverse propensity, normalised; the same at every layer."""
        return super().edge_weights(layer) if self._trains_as_lightgcn else self._by_propensity

    @cached_property
    def _by_propensity(self) -> EdgeWeights:
        graph = self.graph
        share = graph.item_degree[graph.edge_item] / graph.item_degree.max().clamp(min=1)
        inverse = 1.0 / share.pow(self.propensity_power).clamp(min=self.smallest_propensity)
        if self.normalisation == "lightgcn-times-ip":
            return EdgeWeights(inverse * graph.symmetric_weights().to_user)
        weight = inverse * graph.edge_count
        user_sum = torch.zeros_like(graph.user_degree).index_add_(0, graph.edge_user, weight)
        if self.normalisation == "row":
            to_item = graph.edge_count / graph.item_degree[graph.edge_item]
            return EdgeWeights(weight / user_sum[graph.edge_user], to_item)
        item_sum = torch.zeros_like(graph.item_degree).index_add_(0, graph.edge_item, weight)
        return EdgeWeights(weight * (user_sum.rsqrt()[graph.edge_user] * item_sum.rsqrt()[graph.edge_item]))

    def begin(self) -> None:
        """Train with LightGCN's weights where NAVIP's are applied at inference."""
        self._trains_as_lightgcn = self.applied == "inference"

    def finish(self) -> None:
        """Apply the weights, if they were not before."""
        self._trains_as_lightgcn = False
        self.tables.set_weights()
        super().finish()
