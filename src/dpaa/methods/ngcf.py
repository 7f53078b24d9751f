"""NGCF: messages, and their products with a node's own vector, pass through networks (Wang et al., SIGIR 2019)."""

import math
from collections.abc import Iterator
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import leaky_relu, normalize

from dpaa.graph.tiles import TiledTable
from dpaa.methods.graph_method import Batch, Histories, Vectors, WholeTable, fitted, method

SLOPE = 0.2
"""Of LeakyReLU below 0."""
NETWORKS, DROPOUT = 1, 2
"""Numbers of the random streams that networks and dropout are drawn from."""


@method(
    "ngcf",
    title="layers with networks between them, concatenated; LightGCN is its simplification",
    paper="Wang et al., Neural Graph Collaborative Filtering, SIGIR 2019",
    grid={"learning_rate": (1e-4, 1e-3, 1e-2), "dropout": (0.0, 0.1, 0.3)},
    wide={"sent": ("as-is", "normalised")},
)
class NGCF(WholeTable):
    """Layers with networks between them; without the networks it is LightGCN.

    m = Â e^l,     e^(l+1) = LeakyReLU((m + e^l) W₁ + b₁ + (m ⊙ e^l) W₂ + b₂)
    read-out = e^0 and the later layers at length 1, side by side
    """

    dropout: float = Field(default=0.1, ge=0, lt=1, description="share of a layer's numbers dropped in training")
    sent: Literal["as-is", "normalised"] = Field(
        default="as-is",
        description="input of the next layer: the layer as it is (authors) or at length 1 (RecBole)",
    )

    networks: Tensor = fitted("layers", 2, "embedding_size", "embedding_size")
    """W₁ and W₂ of every layer, (L, 2, d, d)."""
    biases: Tensor = fitted("layers", "embedding_size")
    """b₁ + b₂ of every layer, (L, d): only their sum matters."""

    def parameters(self) -> dict[str, Tensor]:
        """Xavier's uniform networks, biases of 0."""
        layers, size = self.layers, self.embedding_size
        bound = math.sqrt(3.0 / size)
        networks = torch.empty(layers, 2, size, size).uniform_(-bound, bound, generator=self.generator(NETWORKS))
        return {"networks": networks, "biases": torch.zeros(layers, size)}

    def step(self, layer: int, message: Tensor, own: Tensor) -> Tensor:
        """Apply a layer's networks, `LeakyReLU((m + e) W₁ + (m ⊙ e) W₂ + b)`.

        Parameters
        ----------
        layer : from 0
        message, own : (rows, d) m, what the nodes receive, and e, their vectors

        Returns
        -------
        (rows, d) vectors of the next layer
        """
        simple, common = self.networks[layer]
        total = torch.addmm(self.biases[layer], message + own, simple).addmm(message * own, common)
        return leaky_relu(total, SLOPE)

    def layers_of(self, table: Tensor, batch: Batch | None) -> Iterator[Tensor]:
        """Compute layers 0 … L as they are sent.

        Parameters
        ----------
        table : (n_nodes, d) layer 0
        batch : whose dropout is applied; None = none

        Returns
        -------
        one (n_nodes, d) table after the other
        """
        yield table
        own = table
        for layer in range(self.layers):
            own = self.step(layer, self.tables.propagation.differentiable_hop(layer, own), own)
            if batch is not None and self.dropout:
                draw = self.generator(DROPOUT, batch.epoch, batch.number, layer)
                kept = torch.rand(own.shape, generator=draw, device=own.device) >= self.dropout
                own = own * kept / (1.0 - self.dropout)
            if self.sent == "normalised":
                own = normalize(own)
            yield own

    def table_readout(self, table: Tensor, batch: Batch | None) -> Tensor:
        """Layer 0 and the later ones at length 1, side by side.  (nodes, (L + 1) d)."""
        first, *later = self.layers_of(table, batch)
        return torch.cat([first, *(normalize(layer) for layer in later)], dim=1)

    # ------------------------------------------------------------------ users unseen in training

    @torch.no_grad()
    def sent_layers(self) -> Iterator[TiledTable]:
        """The layers with networks between them."""
        for layer in self.layers_of(self.tables.ego.rows(), None):
            yield self._tiled(layer)

    @torch.no_grad()
    def finish(self) -> None:
        """As LightGCN; what an item sends at each layer is kept apart, since networks stand between them."""
        super().finish()
        sent = zip(self.tables.mean_item_weights(), self.sent_layers(), strict=False)
        messages = [mean[:, None] * layer.rows(slice(self.graph.n_users, None)) for mean, layer in sent]
        self.item_message = torch.cat([torch.zeros(self.graph.n_items, 0, device=self.graph.device), *messages], dim=1)

    @torch.no_grad()
    def vectors(self, items: Tensor | None = None, histories: Histories | None = None) -> Vectors:
        """The read-out; a new user has no layer 0 and receives the items' messages at every layer."""
        if histories is None:
            return self.readout_vectors(items)
        messages = torch.split(self._fold_in(histories), self.embedding_size, dim=1)
        own = torch.zeros_like(messages[0])
        layers = [own]
        for layer, message in enumerate(messages):
            own = self.step(layer, message, own)
            layers.append(normalize(own))
            own = layers[-1] if self.sent == "normalised" else own
        users = torch.cat(layers, dim=1)
        return Vectors(lambda index: users[index], self.readout_vectors(items).items)

    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        """Read-outs of all layers' width, and what items send at each of them."""
        size, layers, graph = self.embedding_size, self.layers, self.graph
        return super().state_shapes() | {
            "user_embedding": (graph.n_users, (layers + 1) * size),
            "item_embedding": (graph.n_items, (layers + 1) * size),
            "item_message": (graph.n_items, layers * size),
        }
