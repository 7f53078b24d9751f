"""NAVIP: divide each message by how likely its item was to be seen (Kim et al., CIKM 2022).

    p_i = (d_i / max d)^η,   W_i = 1 / max(p_i, p_min),   Ŵ_ui = W_i / √(S_u S_i),   S = sums of W over a node's edges

No public code and only the abstract could be read: the formula is our reading, see docs/deviations.md.
"""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from dpaa.graph.bipartite import EdgeWeights
from dpaa.methods.base import method
from dpaa.methods.graph_method import GraphMethod


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
    """LightGCN with static, count-based message weights."""

    propensity_power: float = Field(
        default=0.5,
        ge=0,
        description="η: how steeply propensity grows with item degree; 0 gives every item the same and is LightGCN",
    )
    smallest_propensity: float = Field(
        default=0.01, ge=0, le=1, description="p_min: propensities below count as this; 0 sets no bound"
    )
    normalisation: Literal["symmetric", "row", "lightgcn-times-ip"] = Field(
        default="symmetric",
        description=(
            "`symmetric`: by both ends' sums; `row`: a user's weights sum to 1; `lightgcn-times-ip`: degrees only"
        ),
    )
    applied: Literal["training", "inference"] = Field(
        default="training",
        description="whether the weights are in force from the start, or only once LightGCN has been trained",
    )

    _still_plain = False
    """Training as LightGCN, for weights that apply at inference only."""

    def edge_weights(self, layer: int) -> EdgeWeights:
        """Inverse propensity, normalised; the same at every layer."""
        del layer
        return self.graph.symmetric_weights() if self._still_plain else self._by_propensity

    def inverse_propensity(self) -> Tensor:
        """W per edge, (n_edges,): items without edges are never divided by."""
        degree = self.graph.item_degree
        share = degree[self.graph.edge_item] / degree.max().clamp(min=1)
        return 1.0 / share.pow(self.propensity_power).clamp(min=self.smallest_propensity)

    _made: EdgeWeights | None = None

    @property
    def _by_propensity(self) -> EdgeWeights:
        """Made once."""
        if self._made is None:
            self._made = self._weights_by_propensity()
        return self._made

    def _weights_by_propensity(self) -> EdgeWeights:
        graph = self.graph
        weight = self.inverse_propensity() * graph.edge_count
        if self.normalisation == "lightgcn-times-ip":
            return EdgeWeights(self.inverse_propensity() * self.graph.symmetric_weights().to_user)
        user_sum = torch.zeros_like(graph.user_degree).index_add_(0, graph.edge_user, weight)
        if self.normalisation == "row":
            return EdgeWeights(
                weight / user_sum[graph.edge_user], graph.edge_count / graph.item_degree[graph.edge_item]
            )
        item_sum = torch.zeros_like(graph.item_degree).index_add_(0, graph.edge_item, weight)
        return EdgeWeights(weight * (user_sum.rsqrt()[graph.edge_user] * item_sum.rsqrt()[graph.edge_item]))

    def begin(self) -> None:
        """LightGCN's weights first, where NAVIP's come at inference."""
        self._still_plain = self.applied == "inference"

    def finish(self) -> None:
        """The weights are in force, if they were not before."""
        self._still_plain = False
        self.tables.set_weights()
        super().finish()
