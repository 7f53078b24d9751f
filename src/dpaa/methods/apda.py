"""APDA: weight each message by the distance of its two ends, recomputed at every pass (Zhou et al., SIGIR 2023)."""

from collections.abc import Iterator
from itertools import islice
from typing import ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import normalize, softplus

from dpaa.graph._layers import Messages, SenderDots
from dpaa.graph.bipartite import EdgeWeights
from dpaa.graph.tiles import TiledTable
from dpaa.methods.graph_method import Batch, WholeTable, method

PERTURBATION = 1
"""Number of the random stream of noise and dropout; the epoch and the batch's number follow it."""


@method(
    "apda",
    title="messages weighted by the distance of their end nodes, at every pass",
    paper="Zhou et al., Adaptive Popularity Debiasing Aggregator for GCF, SIGIR 2023",
    grid={
        "residual": (0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
        "weighting": ("linear", "exponential"),
        "similarity": ("cosine", "cosine/D"),
    },
    wide={"scale": (0.9, 1.1, 1.3), "noise": (0.0, 0.1, 0.2), "dropout": (0.0, 0.2, 0.4, 0.6)},
)
class APDA(WholeTable):
    """LightGCN with message weights recomputed from the embeddings at every pass.

    n0 = E / ‖E‖,   z = unit(h^l + ρ n0),   ẑ = z + noise (training only)
    x_ab = (2 − 2 c_ab) / τ,   c_ab = stopgrad(ẑ_a)·ẑ_b;    w = x, or ½ exp(x) softplus(x)
    h^(l+1)_a = Σ_b w_ab / √(d_a d_b) dropout(ẑ_b) + ρ (z_a − n0_a);   read-out: mean of h^0 … h^L

    Weights carry gradient, to the sender alone.
    """

    residual: float = Field(default=0.6, ge=0, description="ρ: share of the initial direction added to every layer")
    scale: float = Field(default=1.1, gt=0, description="τ: distances are divided by it")
    weighting: Literal["linear", "exponential"] = Field(
        default="linear", description="weight as a function of the scaled distance x: x, or `½ exp(x) softplus(x)`"
    )
    similarity: Literal["cosine", "cosine/D"] = Field(
        default="cosine", description="the cosine, or its mean over the D columns as in the public code"
    )
    noise: float = Field(default=0.1, ge=0, description="length of the noise added to every node while training")
    dropout: float = Field(default=0.4, ge=0, lt=1, description="dropout rate of messages while training")

    _static_weights: ClassVar[bool] = False

    def propagate(self, table: Tensor, batch: Batch | None) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Propagate layer by layer.

        Parameters
        ----------
        table : (n_nodes, d) layer 0
        batch : whose noise and dropout are applied; None = neither

        Returns
        -------
        what is sent, ẑ, (n_nodes, d); the weights, (2 · n_edges,) by slots; and y^(l+1) = h^(l+1) + ρ n0: E + ρ n0 has
        E's direction, so n0 is z of layer 0, and ρ n0 cancels from one layer to the next
        """
        graph, y = self.graph, table
        scaling = graph.slot_values(graph.symmetric_weights())
        draws = None if batch is None else np.random.default_rng([self.seed, PERTURBATION, batch.epoch, batch.number])
        for _ in range(self.layers):
            z = normalize(y)
            sent = kept = z
            if draws is not None:
                noise = torch.from_numpy(draws.random(tuple(z.shape), dtype=np.float32)).to(z.device)
                sent = z + self.noise * z.detach().sign() * normalize(noise)
                uniform = torch.from_numpy(draws.random(tuple(z.shape), dtype=np.float32)).to(z.device)
                kept = sent * (uniform >= self.dropout) / (1.0 - self.dropout)
            weights = self._weights(sent) * scaling
            y = Messages.apply(weights, kept, graph) + self.residual * z  # type: ignore[no-untyped-call]
            yield sent, weights, y

    def _weights(self, sent: Tensor) -> Tensor:
        """Weights of every slot, degree scaling apart.  (2 · n_edges,)."""
        share = 1.0 if self.similarity == "cosine" else 1.0 / self.embedding_size
        cosine: Tensor = SenderDots.apply(sent, self.graph)  # type: ignore[no-untyped-call]
        distance = (2.0 - 2.0 * share * cosine) / self.scale
        return distance if self.weighting == "linear" else 0.5 * distance.exp() * softplus(distance)

    def table_readout(self, table: Tensor, batch: Batch | None) -> Tensor:
        """`(E + y^1 + … + y^L − L ρ n0) / (L + 1)`."""
        total = table - self.layers * self.residual * normalize(table)
        for _, _, y in self.propagate(table, batch):
            total = total + y
        return total / (self.layers + 1)

    @torch.no_grad()
    def edge_weights(self, layer: int) -> EdgeWeights:
        """Weights of the current table, for new users and for the run's files."""
        _, weights, _ = next(islice(self.propagate(self.tables.ego.rows(), None), layer, None))
        return EdgeWeights(weights[: self.graph.n_edges])

    @torch.no_grad()
    def sent_layers(self) -> Iterator[TiledTable]:
        """Return unit vectors, which are sent instead of the layers."""
        for sent, _, _ in self.propagate(self.tables.ego.rows(), None):
            yield self._tiled(sent)
