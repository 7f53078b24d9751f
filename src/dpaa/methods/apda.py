"""APDA: weight each message by the distance of its two ends, recomputed at every pass (Zhou et al., SIGIR 2023).

    n0 = E / ‖E‖,   z = unit(h^l + ρ n0),   ẑ = z + noise (training only)
    x_ab = (2 − 2 c_ab) / τ,   c_ab = stopgrad(ẑ_a)·ẑ_b;    w = x, or ½ exp(x) softplus(x)
    h^(l+1)_a = Σ_b w_ab / √(d_a d_b) dropout(ẑ_b) + ρ (z_a − n0_a);   read-out: mean of h^0 … h^L

The weights carry gradient, so the layers are not linear in E: `apda_layers` has them and the way back.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from typing import ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from dpaa.graph.bipartite import EdgeWeights
from dpaa.graph.propagation import TiledTable
from dpaa.methods._apda_layers import ApdaLayers, Perturbation, ReadoutRows
from dpaa.methods.base import method
from dpaa.methods.graph_method import WholeTable
from dpaa.methods.rows import Batch

PERTURBATION = 1
"""Number of the random stream of noise and dropout; the epoch and the batch's number follow it."""


@method(
    "apda",
    title="messages weighted by the distance of their ends, at every pass",
    paper="Zhou et al., Adaptive Popularity Debiasing Aggregator for GCF, SIGIR 2023",
    grid={
        "residual": (0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
        "weighting": ("linear", "exponential"),
        "similarity": ("cosine", "cosine/D"),
    },
    wide={
        "scale": (0.9, 1.1, 1.3),
        "noise": (0.0, 0.1, 0.2),
        "dropout": (0.0, 0.2, 0.4, 0.6),
    },
)
class APDA(WholeTable):
    """LightGCN with weights that follow the embeddings."""

    residual: float = Field(default=0.6, ge=0, description="ρ: how much of the initial direction joins every layer")
    scale: float = Field(default=1.1, gt=0, description="τ: distances are divided by it")
    weighting: Literal["linear", "exponential"] = Field(
        default="linear",
        description="weight as a function of the scaled distance x: x itself, or `½ exp(x) softplus(x)`",
    )
    similarity: Literal["cosine", "cosine/D"] = Field(
        default="cosine",
        description="what the distance is made from: the cosine, or its mean over the D columns as in the public code",
    )
    noise: float = Field(default=0.1, ge=0, description="length of the noise added to every node while training")
    dropout: float = Field(default=0.4, ge=0, lt=1, description="share of what is sent that is dropped while training")

    _static_weights: ClassVar[bool] = False

    @cached_property
    def _apda(self) -> ApdaLayers:
        """The layers over this graph."""
        share = 1.0 if self.similarity == "cosine" else 1.0 / self.embedding_size
        return ApdaLayers(self.graph, self.layers, self.residual, self.scale, self.weighting, share)

    def table_readout(self, table: Tensor, nodes: Tensor | None, batch: Batch | None) -> Tensor:
        """With the noise and the dropout that belong to the batch, or without."""
        if nodes is None or batch is None:
            return self._apda.readout(table)
        stream = (PERTURBATION, batch.epoch, batch.number)
        draws = np.random.default_rng([self.seed, *stream])
        perturbation = Perturbation(draws, self.noise, self.dropout)
        return ReadoutRows.apply(table, self._apda, perturbation, nodes)  # type: ignore[no-any-return, no-untyped-call]

    @torch.no_grad()
    def edge_weights(self, layer: int) -> EdgeWeights:
        """The weights of the current table, for newcomers and for the run's files."""
        walked, _ = next(islice(self._apda.walk(self.tables.ego.rows(), None), layer, None))
        weights = walked.values[: self.graph.n_edges].clone()
        return EdgeWeights(weights, weights)

    @torch.no_grad()
    def sent_layers(self) -> Iterator[TiledTable]:
        """Unit vectors are sent, not the layers."""
        for layer, _ in self._apda.walk(self.tables.ego.rows(), None):
            yield TiledTable.from_dense(layer.sent, self.compute.tile_columns)
