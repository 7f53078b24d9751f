"""NCL: a node should agree with its even-hop neighbourhood, and with its kind (Lin et al., WWW 2022).

    structure: layer 2h of a node against layer 0 of all nodes of its side
    kind:      layer 0 of a node against the centres of all clusters of its side
    loss = BPR + L2 + λ_s (users + α items) + λ_p (users + items), each an InfoNCE

Clusters are k-means of layer 0, made before every epoch once the first ones are over.
"""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods._clusters import k_means
from dpaa.methods.base import method
from dpaa.methods.contrast import info_nce
from dpaa.methods.graph_method import WholeTable
from dpaa.methods.rows import Batch, Rows

CLUSTERS = 1
"""Number of the random stream that k-means starts from."""
STEPS = 20
"""Of k-means at most."""
SIDES = ("users", "items")


@method(
    "ncl",
    title="a node made to agree with its even-hop neighbourhood and with its cluster",
    paper="Lin et al., Improving Graph Collaborative Filtering with Neighborhood-enriched CL, WWW 2022",
    grid={
        "structure_weight": (1e-4, 4e-4, 4e-3, 4e-2),
        "kind_weight": (0.0, 3e-4, 3e-3),
    },
)
class NCL(WholeTable):
    """LightGCN with two contrasts of neighbourhoods."""

    structure_weight: float = Field(
        default=4e-4,
        ge=0,
        description="λ_s: of the mean over the batch (public code sums: its 1e-7 at a batch of 4,096 is this)",
    )
    item_share: float = Field(
        default=1.0, ge=0, description="α: how much items count beside users in the structure term"
    )
    kind_weight: float = Field(
        default=3e-4,
        ge=0,
        description="λ_p, of the mean as well (public code: 8e-8); with both weights 0 it is LightGCN",
    )
    hops: int = Field(
        default=1, ge=1, description="h: layer 2h is compared with layer 0 (the last layer where there are fewer)"
    )
    clusters: int = Field(default=1000, ge=1, description="of users and of items; at most half as many as there are")
    temperature: float = Field(default=0.1, gt=0, description="τ of both contrasts")
    warm_up_epochs: int = Field(default=20, ge=0, description="epochs before the first clusters are made")

    _layers: tuple[Tensor, ...] = ()
    """Of the pass in hand."""

    def _attach(self, graph: BipartiteGraph) -> None:
        super()._attach(graph)
        self._centres = {side: torch.empty(0) for side in SIDES}
        self._cluster = {side: torch.empty(0, dtype=torch.int64) for side in SIDES}

    def table_readout(self, table: Tensor, nodes: Tensor | None, batch: Batch | None) -> Tensor:
        """LightGCN's; the loss looks at the layers too."""
        layers = tuple(self.tables.propagation.differentiable_layers(table))
        self._layers = () if batch is None else layers
        mean = torch.stack(layers).mean(dim=0)
        return mean if nodes is None else mean.index_select(0, nodes)

    @torch.no_grad()
    def refresh(self, epoch: int) -> dict[str, Any]:
        """Clusters of layer 0."""
        if self.kind_weight and epoch > self.warm_up_epochs:
            for number, (side, rows) in enumerate(
                zip(SIDES, (self.tables.user_ego, self.tables.item_ego), strict=True)
            ):
                wanted = max(1, min(self.clusters, len(rows) // 2))
                found = k_means(rows, wanted, self.generator(CLUSTERS, epoch, number), STEPS)
                members = torch.bincount(found).clamp(min=1)
                sums = torch.zeros(len(members), rows.shape[1], device=rows.device).index_add_(0, found, rows)
                self._cluster[side], self._centres[side] = found, sums / members[:, None]
        return {}

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """LightGCN's, and both contrasts over the batch's rows (repeats count, and are made once)."""
        fit, layers, self._layers = super().loss(batch, rows), self._layers, ()
        sizes = [self.graph.n_users, self.graph.n_items]
        if not layers:
            return fit
        far, near = (torch.split(layers[min(place, self.layers)], sizes) for place in (2 * self.hops, 0))
        weights, total = (1.0, self.item_share), fit
        for place, (side, nodes) in enumerate(zip(SIDES, (batch.users, batch.positive), strict=True)):
            own, times = torch.unique(nodes, return_counts=True)
            if self.structure_weight and weights[place]:
                contrast = info_nce(far[place].index_select(0, own), near[place], self.temperature, own, times)
                total = total + self.structure_weight * weights[place] * contrast
            if self.kind_weight and len(self._centres[side]):
                kind = self._cluster[side][own]
                mine, centres = near[place].index_select(0, own), self._centres[side]
                contrast = info_nce(mine, centres, self.temperature, kind, times)
                total = total + self.kind_weight * contrast
        return total

    def extra_state(self) -> dict[str, Tensor]:
        """The clusters of the epoch."""
        return {f"cluster.{side}": self._cluster[side].clone() for side in SIDES} | {
            f"centres.{side}": self._centres[side].clone() for side in SIDES
        }

    def load_extra_state(self, state: dict[str, Tensor]) -> None:
        """Put them back."""
        for side in SIDES:
            self._cluster[side], self._centres[side] = (
                state[f"cluster.{side}"].clone(),
                state[f"centres.{side}"].clone(),
            )
