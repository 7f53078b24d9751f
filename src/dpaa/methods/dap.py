"""DAP: subtract the influence of a cluster's higher- and lower-degree nodes (Chen et al., Frontiers of CS 2024)."""

import itertools
from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import normalize, pad

from dpaa.graph.tiles import TiledTable
from dpaa.methods._shared import k_means
from dpaa.methods.base import ChosenAfterwards, Shapes, Validation
from dpaa.methods.graph_method import GraphMethod, method

KMEANS_SEED = 9
STRENGTHS = (0.0, 0.25, 0.5, 1.0)
CLUSTERS = (1, 10, 50)
REFINEMENT = (-0.125, 0.0, 0.125)
"""Tried on validation: α = β and the number of clusters; then α and β apart, around the best."""


def anchors(layer: Tensor, degree: Tensor, cluster: Tensor) -> tuple[Tensor, Tensor]:
    """Mean rows of the cluster's nodes with strictly higher and strictly lower degree, 0 where none.  Each (n, d)."""
    levels, level = torch.unique(degree, return_inverse=True)
    key = cluster * len(levels) + level
    ordered, order = torch.sort(key)
    # Sorted by cluster and degree, the mean over any range of degrees is a difference of two running sums;
    # float64, for such differences lose digits.
    running = pad(layer[order].double().cumsum(0), (0, 0, 1, 0))  # (n + 1, d)

    def mean(first: Tensor, last: Tensor) -> Tensor:
        return ((running[last] - running[first]) / (last - first).clamp(min=1)[:, None]).to(layer.dtype)

    begin, end = (torch.searchsorted(ordered, (cluster + step) * len(levels)) for step in (0, 1))
    higher = mean(torch.searchsorted(ordered, key, right=True), end)
    return higher, mean(begin, torch.searchsorted(ordered, key))


@method(
    "dap",
    title="after training, the influence of higher- and lower-degree nodes is subtracted",
    paper="Chen et al., How Graph Convolutions Amplify Popularity Bias, Frontiers of CS 2024",
)
class DAP(ChosenAfterwards, GraphMethod):
    """LightGCN, its layers corrected after training, each before it feeds the next.

    y = Â a^l,   clusters by k-means on the rows of y
    H_v, L_v = unit mean of y over the nodes of v's cluster with higher, lower degree (0 where there is none)
    a^(l+1) = y − α cos(a^l, H) H − β cos(a^l, L) L
    """

    high_strength: Literal["tune"] | Annotated[float, Field(ge=0)] = Field(
        default="tune",
        description="α: share of the higher-degree nodes' influence subtracted; `tune`: by validation (0 without)",
    )
    low_strength: Literal["tune"] | Annotated[float, Field(ge=0)] = Field(
        default="tune", description="β: share of the lower-degree nodes' influence subtracted"
    )
    clusters: Literal["tune"] | Annotated[int, Field(ge=1)] = Field(default="tune", description="P: clusters per layer")

    saved: ClassVar[Shapes] = {"high_strength": (), "low_strength": (), "clusters": ()}

    def finish(self) -> None:
        """Apply the given strengths, and 0 for those chosen on validation."""
        self.correct(0.0, 0.0, 1)
        self.item_message = self.tables.item_messages()

    @torch.no_grad()
    def correct(self, high: float, low: float, clusters: int) -> None:
        """Compute the read-out of the corrected layers; hyperparameters that are set take precedence.

        Parameters
        ----------
        high : α, share of the higher-degree nodes' imprint subtracted
        low : β, share of the lower-degree nodes' imprint subtracted
        clusters : P, clusters per layer
        """
        chosen = self._resolve(high, low, clusters)
        self.chosen_high_strength, self.chosen_low_strength, self.chosen_clusters = chosen
        layers = self.sent_layers()
        readout = next(layers).rows()
        for layer in layers:
            readout.add_(layer.rows())
        self.user_embedding, self.item_embedding = self.tables.split(readout.mul_(self.tables.propagation.share))

    def _resolve(self, high: float, low: float, clusters: int) -> tuple[float, float, int]:
        high = high if self.high_strength == "tune" else self.high_strength
        low = low if self.low_strength == "tune" else self.low_strength
        clusters = clusters if self.clusters == "tune" else self.clusters
        return high, low, clusters if high or low else 1  # without strength there is nothing to cluster for

    def sent_layers(self) -> Iterator[TiledTable]:
        """`a^0 … a^L`."""
        table = self.tables.ego
        yield table
        for layer in range(self.layers):
            table = self._corrected(self.tables.propagation.hop(layer, table), table)
            yield table

    def _corrected(self, layer: TiledTable, before: TiledTable) -> TiledTable:
        strengths = (self.chosen_high_strength, self.chosen_low_strength)
        if not any(strengths):
            return layer
        rows, direction = layer.rows(), normalize(before.rows())
        degree = torch.cat([self.graph.user_degree, self.graph.item_degree]).clamp(min=1)
        cluster = k_means(rows, int(self.chosen_clusters), torch.Generator().manual_seed(KMEANS_SEED))
        corrected = rows
        for strength, anchor in zip(strengths, anchors(rows, degree, cluster), strict=True):
            unit = normalize(anchor)
            corrected = corrected - strength * torch.sum(direction * unit, dim=1, keepdim=True) * unit
        return self._tiled(corrected)

    def choose(self, validation: Validation) -> dict[str, float]:
        """α = β and P over their grid, then α and β apart around the best."""
        recalls: dict[tuple[float, float, int], float] = {}

        def attempt(high: float, low: float, clusters: int) -> None:
            key = self._resolve(high, low, clusters)
            if key not in recalls and min(high, low) >= 0:
                self.correct(*key)
                recalls[key] = validation.recall_of(self)

        def best() -> tuple[float, float, int]:
            return max(recalls, key=lambda strengths: recalls[strengths])  # the first of equals: the weakest

        for clusters, strength in itertools.product(CLUSTERS, STRENGTHS):
            attempt(strength, strength, clusters)
        high, low, clusters = best()
        for more, less in itertools.product(REFINEMENT, REFINEMENT):
            attempt(high + more, low + less, clusters)
        self.correct(*best())
        self.item_message = self.tables.item_messages()
        return {name: getattr(self, f"chosen_{name}") for name in ("high_strength", "low_strength", "clusters")}
