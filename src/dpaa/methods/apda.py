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
from dpaa.methods.apda_layers import ApdaLayers, Perturbation, ReadoutRows
from dpaa.methods.backbone import GraphMethod
from dpaa.methods.rows import Batch
from dpaa.methods.settings import Settings, TrainedSettings

PERTURBATION = 1
"""Number of the random stream of noise and dropout; the epoch and the batch's number follow it."""


class ApdaSettings(TrainedSettings):
    """LightGCN's settings and APDA's."""

    residual: float = Field(default=0.6, ge=0)
    """ρ: how much of the initial direction joins every layer."""
    scale: float = Field(default=1.1, gt=0)
    """τ: distances are divided by it."""
    weighting: Literal["linear", "exponential"] = "linear"
    """Weight as a function of the scaled distance x: x itself, or `½ exp(x) softplus(x)`."""
    similarity: Literal["cosine", "cosine/D"] = "cosine"
    """What the distance is made from: the cosine, or its mean over the D columns as in the public code."""
    noise: float = Field(default=0.1, ge=0)
    """Length of the noise added to every node while training."""
    dropout: float = Field(default=0.4, ge=0, lt=1)
    """Share of what is sent that is dropped while training."""


class APDA(GraphMethod):
    """LightGCN with weights that follow the embeddings.  Changes: `readout`, `set_weights`, `edge_weights`,
    `sent_layers`,
    `extra_memory_bytes`.
    """

    name: ClassVar[str] = "apda"
    title: ClassVar[str] = "messages weighted by the distance of their ends, at every pass"
    paper: ClassVar[str] = "Zhou et al., Adaptive Popularity Debiasing Aggregator for GCF, SIGIR 2023"
    settings_type: ClassVar[type[Settings]] = ApdaSettings
    grid: ClassVar[dict[str, tuple[object, ...]]] = {
        "residual": (0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
        "weighting": ("linear", "exponential"),
        "similarity": ("cosine", "cosine/D"),
    }
    wide: ClassVar[dict[str, tuple[object, ...]]] = {
        "scale": (0.9, 1.1, 1.3),
        "noise": (0.0, 0.1, 0.2),
        "dropout": (0.0, 0.2, 0.4, 0.6),
    }

    uses_whole_table: ClassVar[bool] = True

    settings: ApdaSettings

    @cached_property
    def layers(self) -> ApdaLayers:
        """The layers with this graph and these settings."""
        settings = self.settings
        share = 1.0 if settings.similarity == "cosine" else 1.0 / settings.embedding_size
        return ApdaLayers(self.graph, settings.layers, settings.residual, settings.scale, settings.weighting, share)

    def readout(self, table: Tensor, nodes: Tensor | None, batch: Batch | None) -> Tensor:
        """With the noise and the dropout that belong to the batch, or without."""
        if nodes is None or batch is None:
            return self.layers.readout(table)
        stream = (PERTURBATION, batch.epoch, batch.number)
        draws: np.random.Generator | torch.Generator = np.random.default_rng([self.settings.seed, *stream])
        if self.device.type == "cuda":
            draws = self.device_generator(*stream)
        perturbation = Perturbation(draws, self.settings.noise, self.settings.dropout)
        return ReadoutRows.apply(table, self.layers, perturbation, nodes)  # type: ignore[no-any-return, no-untyped-call]

    def set_weights(self) -> None:
        """None are put in force: they follow the embeddings."""

    @torch.no_grad()
    def edge_weights(self, layer: int) -> EdgeWeights:
        """The weights of the current table, for newcomers and for the run's files."""
        walked, _ = next(islice(self.layers.walk(self.ego.rows(), None), layer, None))
        weights = walked.values[: self.graph.n_edges].clone()
        return EdgeWeights(weights, weights)

    @torch.no_grad()
    def sent_layers(self) -> Iterator[TiledTable]:
        """Unit vectors are sent, not the layers."""
        for layer, _ in self.layers.walk(self.ego.rows(), None):
            yield TiledTable.from_dense(layer.sent, self.compute.tile_columns)
