"""NCL: contrast of a node with its even-hop neighbourhood and with its cluster (Lin et al., WWW 2022)."""

from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from dpaa.methods._shared import k_means
from dpaa.methods.contrast import info_nce
from dpaa.methods.graph_method import Batch, Rows, WholeTable, method

CLUSTERS = 1
"""Number of the random stream that k-means starts from."""
STEPS = 20
"""Of k-means at most."""
SIDES = ("users", "items")


@method(
    "ncl",
    title="contrast of a node with its even-hop neighbourhood and with its cluster",
    paper="Lin et al., Improving Graph Collaborative Filtering with Neighborhood-enriched CL, WWW 2022",
    grid={"structure_weight": (1e-4, 4e-4, 4e-3, 4e-2), "kind_weight": (0.0, 3e-4, 3e-3)},
)
class NCL(WholeTable):
    """LightGCN with two contrasts of neighbourhoods.

    structure: layer 2h of a node against layer 0 of all nodes of its side
    cluster:   layer 0 of a node against the centres of all clusters of its side
    loss = BPR + L2 + λ_s (users + α items) + λ_p (users + items), each an InfoNCE

    Clusters are k-means of layer 0, computed before every epoch after a warm-up.
    """

    structure_weight: float = Field(default=4e-4, ge=0, description="λ_s, of the mean (public code sums: 1e-7 · 4,096)")
    item_share: float = Field(default=1.0, ge=0, description="α: weight of items beside users in the structure term")
    kind_weight: float = Field(default=3e-4, ge=0, description="λ_p, of the mean (public code: 8e-8 · 4,096)")
    hops: int = Field(default=1, ge=1, description="h: layer 2h, or the last, is compared with layer 0")
    clusters: int = Field(default=1000, ge=1, description="of users and of items; at most half as many as there are")
    temperature: float = Field(default=0.1, gt=0, description="τ of both contrasts")
    warm_up_epochs: int = Field(default=20, ge=0, description="epochs before the first clusters are computed")

    _layers: list[Tensor] | None = None
    """Of the current pass."""

    def begin(self) -> None:
        """No clusters yet: `cluster.SIDE` is (nodes,) int64, `centres.SIDE` (clusters, d)."""
        self._clusters: dict[str, Tensor] = {}

    def table_readout(self, table: Tensor, batch: Batch | None) -> Tensor:
        """LightGCN's; the loss needs the layers too."""
        layers = list(self.tables.propagation.differentiable_layers(table))
        self._layers = None if batch is None else layers
        return torch.stack(layers).mean(dim=0)

    @torch.no_grad()
    def refresh(self, epoch: int) -> dict[str, Any]:
        """Cluster layer 0."""
        if self.kind_weight and epoch > self.warm_up_epochs:
            sides = zip(SIDES, (self.tables.user_ego, self.tables.item_ego), strict=True)
            for number, (side, rows) in enumerate(sides):
                wanted = max(1, min(self.clusters, len(rows) // 2))
                cluster = k_means(rows, wanted, self.generator(CLUSTERS, epoch, number), STEPS)
                members = torch.bincount(cluster).clamp(min=1)
                sums = torch.zeros(len(members), rows.shape[1], device=rows.device).index_add_(0, cluster, rows)
                self._clusters |= {f"cluster.{side}": cluster, f"centres.{side}": sums / members[:, None]}
        return {}

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """LightGCN's, and both contrasts over the batch's rows (a repeated one counts, and is computed once)."""
        total, layers, self._layers = super().loss(batch, rows), self._layers, None
        if layers is None:
            return total
        sizes = [self.graph.n_users, self.graph.n_items]
        neighbourhoods, egos = (torch.split(layers[min(layer, self.layers)], sizes) for layer in (2 * self.hops, 0))
        for side, nodes, ahead, own_layer, share in zip(
            SIDES, (batch.users, batch.positive), neighbourhoods, egos, (1.0, self.item_share), strict=True
        ):
            own, times = torch.unique(nodes, return_counts=True)
            if self.structure_weight * share:
                contrast = info_nce(ahead.index_select(0, own), own_layer, self.temperature, own, times)
                total = total + self.structure_weight * share * contrast
            if self.kind_weight and self._clusters:
                cluster, centres = self._clusters[f"cluster.{side}"][own], self._clusters[f"centres.{side}"]
                contrast = info_nce(own_layer.index_select(0, own), centres, self.temperature, cluster, times)
                total = total + self.kind_weight * contrast
        return total

    def extra_state(self) -> dict[str, Tensor]:
        """The clusters of the epoch."""
        return {name: tensor.clone() for name, tensor in self._clusters.items()}

    def load_extra_state(self, state: dict[str, Tensor]) -> None:
        """Restore the clusters of the epoch."""
        self._clusters = {name: state[name].clone() for name in state if name.startswith(("cluster.", "centres."))}
