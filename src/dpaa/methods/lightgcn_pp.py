"""LightGCN++: messages of length 1, degree powers as weights, weighted layer 0 (Lee et al., RecSys 2024)."""

from collections.abc import Iterator
from functools import cached_property

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import normalize

from dpaa.graph.bipartite import EdgeWeights
from dpaa.graph.tiles import TiledTable
from dpaa.methods.graph_method import Batch, WholeTable, method


@method(
    "lightgcn-pp",
    title="LightGCN++: messages at length 1, weighted by powers of both degrees",
    paper="Lee et al., Revisiting LightGCN: Unexpected Inflexibility, Inconsistency, and A Remedy, RecSys 2024",
    grid={"receiver_power": (0.4, 0.5, 0.6), "sender_power": (-0.1, 0.0, 0.1), "ego_share": (0.0, 0.1, 0.2)},
)
class LightGCNpp(WholeTable):
    """LightGCN with messages of length 1, so that degrees act by two powers alone.

    e_a^(l+1) = Σ_b d_a^−α d_b^−β e_b^l / ‖e_b^l‖,     read-out = γ e^0 + (1 − γ) mean(e^1 … e^L)
    """

    layers: int = 2
    receiver_power: float = Field(default=0.6, description="α: larger values shorten the vectors of high-degree nodes")
    sender_power: float = Field(default=-0.1, description="β: larger values down-weight high-degree neighbours")
    ego_share: float = Field(default=0.2, ge=0, le=1, description="γ: share of layer 0 in the read-out")

    @cached_property
    def _weights(self) -> EdgeWeights:
        graph = self.graph
        user, item = graph.user_degree[graph.edge_user.long()], graph.item_degree[graph.edge_item.long()]
        to_user, to_item = (
            receiver**-self.receiver_power * sender**-self.sender_power * graph.edge_count
            for receiver, sender in ((user, item), (item, user))
        )
        return EdgeWeights(to_user, to_item)

    def edge_weights(self, layer: int) -> EdgeWeights:
        """`d_a^−α d_b^−β` of receiver a and sender b, the same at every layer."""
        return self._weights

    def new_user_scale(self, history_length: Tensor) -> Tensor:
        """A new user's own factor, `d_u^−α`."""
        return history_length.clamp(min=1) ** -self.receiver_power

    def propagate(self, table: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Propagate layer by layer.

        Parameters
        ----------
        table : (n_nodes, d) layer 0

        Returns
        -------
        what is sent, and the next layer, (n_nodes, d) each
        """
        for layer in range(self.layers):
            sent = normalize(table)
            table = self.tables.propagation.differentiable_hop(layer, sent)
            yield sent, table

    def table_readout(self, table: Tensor, batch: Batch | None) -> Tensor:
        """`γ e^0 + (1 − γ) mean(e^1 … e^L)`; layer 0 where there is no other."""
        later = [layer for _, layer in self.propagate(table)]
        mean = torch.stack(later).mean(dim=0) if later else table
        return self.ego_share * table + (1.0 - self.ego_share) * mean

    @torch.no_grad()
    def sent_layers(self) -> Iterator[TiledTable]:
        """Vectors of length 1 are sent, not the layers."""
        for sent, _ in self.propagate(self.tables.ego.rows()):
            yield self._tiled(sent)
