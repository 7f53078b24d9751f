"""NGCF: what neighbours say passes through networks, and so does what both ends share (Wang et al., SIGIR 2019).

    m = Â e^l,     e^(l+1) = LeakyReLU((m + e^l) W₁ + b₁ + (m ⊙ e^l) W₂ + b₂) + δ e^0,     δ = 0 but for DPAA's weights
    read-out = e^0 and the later layers at length 1, side by side

LightGCN is what is left of it without the networks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import leaky_relu, normalize

from dpaa.graph.propagation import TiledTable
from dpaa.methods.base import Histories, Scorer, Vectors, fitted, method
from dpaa.methods.graph_method import WholeTable
from dpaa.methods.rows import Batch
from dpaa.methods.weighted_messages import WeightedMessages

SLOPE = 0.2
"""Of LeakyReLU below 0."""
NETWORKS, DROPOUT = 1, 2
"""Numbers of the random streams that networks and dropout are drawn from."""


@method(
    "ngcf",
    title="layers with networks between them, side by side: what LightGCN simplified",
    paper="Wang et al., Neural Graph Collaborative Filtering, SIGIR 2019",
    grid={"learning_rate": (1e-4, 1e-3, 1e-2), "dropout": (0.0, 0.1, 0.3)},
    wide={"sent": ("as-is", "normalised")},
)
class NGCF(WholeTable, WeightedMessages):
    """Layers with networks between them."""

    dropout: float = Field(
        default=0.1, ge=0, lt=1, description="share of a layer's numbers that is left out in training"
    )
    sent: Literal["as-is", "normalised"] = Field(
        default="as-is",
        description="what is handed to the next layer: the layer as it is (the authors), or at length 1 (RecBole)",
    )
    message_weights: Literal["lightgcn", "dpaa"] = Field(
        default="lightgcn",
        description=(
            "whose weights messages carry; with `lightgcn`, those that DPAA has too (η, δ, C …) have no effect"
        ),
    )

    saved: ClassVar[dict[str, tuple[str | int, ...]]] = {
        "networks": ("layers", 2, "embedding_size", "embedding_size"),
        "biases": ("layers", "embedding_size"),
    }

    networks: Tensor = fitted()
    """W₁ and W₂ of every layer, (L, 2, d, d)."""
    biases: Tensor = fitted()
    """b₁ + b₂ of every layer, (L, d): only their sum is ever seen."""

    @property
    def weighs_messages(self) -> bool:
        """As set."""
        return self.message_weights == "dpaa"

    def parameters(self) -> dict[str, Tensor]:
        """Xavier's uniform networks, biases of 0."""
        layers, size = self.layers, self.embedding_size
        bound = math.sqrt(3.0 / size)
        networks = torch.empty(layers, 2, size, size).uniform_(-bound, bound, generator=self.generator(NETWORKS))
        return {"networks": networks, "biases": torch.zeros(layers, size)}

    def step(self, layer: int, message: Tensor, own: Tensor) -> Tensor:
        """`LeakyReLU((m + e) W₁ + (m ⊙ e) W₂ + b)` of rows.  (rows, d)."""
        simple, common = self.networks[layer]
        total = torch.addmm(self.biases[layer], message + own, simple).addmm(message * own, common)
        return leaky_relu(total, SLOPE)

    def layers_of(self, table: Tensor, batch: Batch | None) -> Iterator[Tensor]:
        """Layers 0 … L as they are handed on, with the dropout that belongs to the batch.  Each (n_nodes, d)."""
        yield table
        own, residual, dropout = table, self.residual_share(), self.dropout
        for layer in range(self.layers):
            own = self.step(layer, self.tables.propagation.differentiable_hop(layer, own), own)
            if residual:
                own = own + residual * table
            if batch is not None and dropout:
                draw = self.generator(DROPOUT, batch.epoch, batch.number, layer)
                kept = torch.rand(own.shape, generator=draw, device=own.device) >= dropout
                own = own * kept / (1.0 - dropout)
            if self.sent == "normalised":
                own = normalize(own)
            yield own

    def table_readout(self, table: Tensor, nodes: Tensor | None, batch: Batch | None) -> Tensor:
        """Layer 0 and the later ones at length 1, side by side.  (nodes, (L + 1) d)."""
        first, *later = self.layers_of(table, batch)
        wanted = [first, *later] if nodes is None else [layer.index_select(0, nodes) for layer in (first, *later)]
        return torch.cat([wanted[0], *(normalize(layer) for layer in wanted[1:])], dim=1)

    # ------------------------------------------------------------------ users unseen in training

    @torch.no_grad()
    def sent_layers(self) -> Iterator[TiledTable]:
        """Its own layers."""
        for layer in self.layers_of(self.tables.ego.rows(), None):
            yield TiledTable.from_dense(layer, self.compute.tile_columns)

    @torch.no_grad()
    def finish(self) -> None:
        """As LightGCN; what an item says at each layer is kept apart, since networks stand between them."""
        super().finish()
        said = zip(self.tables.mean_item_weights(), self.sent_layers(), strict=False)
        nothing = torch.zeros(self.graph.n_items, 0, device=self.graph.device)
        self.item_message = torch.cat(
            [nothing, *(mean[:, None] * layer.rows(slice(self.graph.n_users, None)) for mean, layer in said)], dim=1
        )

    def vectors(self, items: Tensor | None = None, histories: Histories | None = None) -> Vectors:
        """The read-out; a newcomer has no layer 0 and hears the items at every layer."""
        if histories is None:
            return self.readout_vectors(items)
        users = self._newcomers(self._fold_in(histories))
        return Vectors(lambda index: users[index], self.readout_vectors(items).items)

    def scorer(self, items: Tensor | None = None, histories: Histories | None = None) -> Scorer:
        """The inner product of those."""
        vectors = self.vectors(items, histories)
        return lambda index: vectors.queries(index) @ vectors.items.T

    @torch.no_grad()
    def _newcomers(self, heard: Tensor) -> Tensor:
        """Read-outs from what was heard at each layer, (users, L d), by the same steps.  (users, (L + 1) d)."""
        size = self.embedding_size
        own = torch.zeros(len(heard), size, device=heard.device)
        found = [own]
        for layer, message in enumerate(torch.split(heard, size, dim=1)):
            own = self.step(layer, message, own)
            found.append(normalize(own))
            own = found[-1] if self.sent == "normalised" else own
        return torch.cat(found, dim=1)

    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        """Read-outs of all layers' width, and what items say at each of them."""
        size, layers, graph = self.embedding_size, self.layers, self.graph
        wide = {
            "user_embedding": (graph.n_users, (layers + 1) * size),
            "item_embedding": (graph.n_items, (layers + 1) * size),
            "item_message": (graph.n_items, layers * size),
        }
        found = super().state_shapes() | wide
        if self._by_readout:  # r_c is made from vectors of that width
            names = [name for name in found if name.startswith("strength_")]
            found |= {name: (found[name][0], (layers + 1) * size) for name in names}
        return found
