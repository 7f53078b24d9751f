"""DAP: subtract what higher- and lower-degree nodes of a cluster have imprinted (Chen et al., Frontiers of CS 2024).

Training is LightGCN's; afterwards the trained table is propagated again, each layer corrected before it feeds the next:

    y = Â a^l,   clusters by KMeans on the rows of y
    H_v, L_v = unit mean of y over the nodes of v's cluster with higher, lower degree (0 where there is none)
    a^(l+1) = y − α cos(a^l, H) H − β cos(a^l, L) L
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import normalize

from dpaa.graph.propagation import TiledTable
from dpaa.kernels.clusters import k_means
from dpaa.methods.backbone import GraphMethod
from dpaa.methods.base import Validation
from dpaa.methods.settings import Settings, TrainedSettings

KMEANS_SEED = 9
STRENGTHS = (0.0, 0.25, 0.5, 1.0)
CLUSTERS = (1, 10, 50)
REFINEMENT = 0.125
"""Tried on validation: α = β and the number of clusters; then α and β apart, one such step around the best."""


class DapSettings(TrainedSettings):
    """LightGCN's settings and DAP's."""

    high_strength: Literal["tune"] | Annotated[float, Field(ge=0)] = "tune"
    """α: how much of the higher-degree nodes' imprint is subtracted; `tune` chooses on validation (0 without one)."""
    low_strength: Literal["tune"] | Annotated[float, Field(ge=0)] = "tune"
    """β: the same for lower-degree nodes."""
    clusters: Literal["tune"] | Annotated[int, Field(ge=1)] = "tune"
    """P: clusters per layer."""


def anchors(layer: Tensor, degree: Tensor, cluster: Tensor) -> tuple[Tensor, Tensor]:
    """Mean rows of the cluster's nodes with strictly higher and strictly lower degree, 0 where none.  Each (n, d)."""
    ranks, rank = torch.unique(degree, return_inverse=True)
    key = cluster * len(ranks) + rank
    ordered, order = torch.sort(key)
    running = torch.nn.functional.pad(layer[order].double().cumsum(0), (0, 0, 1, 0))  # (n + 1, d)

    def mean(first: Tensor, last: Tensor) -> Tensor:
        return ((running[last] - running[first]) / (last - first).clamp(min=1)[:, None]).to(layer.dtype)

    begin, end = (torch.searchsorted(ordered, (cluster + step) * len(ranks)) for step in (0, 1))
    higher = mean(torch.searchsorted(ordered, key, right=True), end)
    return higher, mean(begin, torch.searchsorted(ordered, key))


class DAP(GraphMethod):
    """LightGCN, its layers corrected after training.  Changes: `finish`, `sent_layers`, `tune`."""

    name: ClassVar[str] = "dap"
    title: ClassVar[str] = "after training, imprints of higher- and lower-degree nodes subtracted"
    paper: ClassVar[str] = "Chen et al., How Graph Convolutions Amplify Popularity Bias, Frontiers of CS 2024"
    settings_type: ClassVar[type[Settings]] = DapSettings
    default_candidate: ClassVar[bool] = True

    saved: ClassVar[dict[str, tuple[str | int, ...]]] = {"high_strength": (), "low_strength": (), "clusters": ()}

    settings: DapSettings

    def finish(self) -> None:
        """The strengths that are set (0 for those to be tuned) are in force."""
        fixed = (self.settings.high_strength, self.settings.low_strength)
        high, low = (0.0 if strength == "tune" else strength for strength in fixed)
        self.correct(high, low, 1 if self.settings.clusters == "tune" else self.settings.clusters)
        self.item_message = self.item_messages()

    @torch.no_grad()
    def correct(self, high_strength: float, low_strength: float, clusters: int) -> None:
        """Vectors from the corrected layers; the trained table stays as it is."""
        self.high_strength, self.low_strength, self.clusters = high_strength, low_strength, clusters
        layers = self.sent_layers()
        readout = next(layers).rows()
        for layer in layers:
            readout.add_(layer.rows())
        readout.mul_(self.propagation.share)
        self.split_embeddings(readout)

    def sent_layers(self) -> Iterator[TiledTable]:
        """`a^0 … a^L`."""
        table = self.ego
        yield table
        for layer in range(self.settings.layers):
            table = self._corrected(self.propagation.hop(layer, table), table)
            yield table

    def _corrected(self, layer: TiledTable, before: TiledTable) -> TiledTable:
        if not (self.high_strength or self.low_strength):
            return layer
        rows, direction = layer.rows(), normalize(before.rows())
        degree = torch.cat([self.graph.user_degree, self.graph.item_degree]).clamp(min=1)
        generator = torch.Generator().manual_seed(KMEANS_SEED)
        found = anchors(rows, degree, k_means(rows, int(self.clusters), generator))
        corrected = rows
        for strength, anchor in zip((self.high_strength, self.low_strength), found, strict=True):
            unit = normalize(anchor)
            corrected = corrected - strength * torch.sum(direction * unit, dim=1, keepdim=True) * unit
        return TiledTable.from_dense(corrected, self.compute.tile_columns)

    def tune(self, validation: Validation) -> dict[str, float]:
        """α = β and P over their grid, then α and β apart around the best; what is set stays as set."""
        fixed = self.settings
        tried: dict[tuple[float, float, int], float] = {}

        def attempt(high: float, low: float, clusters: int) -> None:
            high = high if fixed.high_strength == "tune" else fixed.high_strength
            low = low if fixed.low_strength == "tune" else fixed.low_strength
            if fixed.clusters != "tune":
                clusters = fixed.clusters
            elif not (high or low):
                clusters = 1  # without strength there is nothing to cluster for
            if (high, low, clusters) not in tried:
                self.correct(high, low, clusters)
                tried[high, low, clusters] = validation.recall_of(self)

        def best() -> tuple[float, float, int]:
            return max(tried, key=lambda strengths: tried[strengths])  # the first of equals: the weakest

        for clusters, strength in itertools.product(CLUSTERS, STRENGTHS):
            attempt(strength, strength, clusters)
        high, low, clusters = best()
        for pair in itertools.product(_around(high), _around(low)):
            attempt(*pair, clusters)
        self.correct(*best())
        self.item_message = self.item_messages()
        return {"high_strength": self.high_strength, "low_strength": self.low_strength, "clusters": self.clusters}


def _around(strength: float) -> tuple[float, ...]:
    return tuple(value for value in (strength - REFINEMENT, strength, strength + REFINEMENT) if value >= 0)
