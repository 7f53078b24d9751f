"""APDA's layers, with their gradient written by hand: half the passes over tables and edges that autograd makes.

    y^0 = E,   z^l = unit(y^l),   y^(l+1) = Σ_b w_ab / √(d_a d_b) dropout(ẑ_b) + ρ z^l
    read-out · (L + 1) = E + y^1 + … + y^L − L ρ z^0

is the definition in `apda` with y^l = h^l + ρ n0 for l > 0: E + ρ n0 points where E does, so n0 is z^0, and ρ n0
cancels from one layer to the next.  A weight is the same both ways, its gradient is not: it goes to the sender alone.
Back through a layer, with G what reaches its y^(l+1) and ∘ the product number by number:

    q_ab = −2/τ (dw_ab / dx_ab) G_a·dropout(ẑ_b) / √(d_a d_b)
    by ẑ_b = mask_b ∘ Σ_a w_ab G_a / √(d_a d_b) + Σ_a q_ab ẑ_a
    by z = by ẑ + ρ G,    by y = (by z − z (z·by z)) / ‖y‖
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from dpaa.graph.bipartite import BipartiteGraph, EdgeWeights
from dpaa.graph.edges import edge_dots
from dpaa.graph.kernels import KERNELS, add_rows_

SHORTEST = 1e-12
"""Rows shorter than this are divided by it: a row of zeros has no direction and stays zero."""


def unit(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Rows of length 1, and the lengths they had.  (n, d) and (n, 1)."""
    length = torch.linalg.vector_norm(rows, dim=1, keepdim=True).clamp_(min=SHORTEST)
    return rows / length, length


def unit_gradient_(by_unit: Tensor, direction: Tensor, length: Tensor) -> Tensor:
    """Gradient in the rows from that in their directions, which it overwrites.  (n, d)."""
    along = torch.sum(by_unit * direction, dim=1, keepdim=True)
    return by_unit.addcmul_(direction, along, value=-1.0).div_(length)


def distance_weight(distance: Tensor, weighting: str) -> Tensor:
    """The weight w of an edge from the scaled distance x of its ends."""
    return distance if weighting == "linear" else distance.exp().mul_(softplus(distance)).mul_(0.5)


def distance_slope(distance: Tensor, weighting: str) -> Tensor | None:
    """`dw / dx`; None where it is 1."""
    if weighting == "linear":
        return None
    return distance.exp().mul_(softplus(distance) + distance.sigmoid()).mul_(0.5)


@dataclass(frozen=True)
class Perturbation:
    """Noise and dropout of one pass, drawn in a fixed order: per layer the noise, then the dropout."""

    generator: np.random.Generator | torch.Generator
    """numpy's, which draws a table in less than half of torch's time; the device's own on a GPU."""
    noise: float
    dropout: float

    def perturbed(self, direction: Tensor) -> Tensor:
        """Every row with noise of the given length added, away from zero in every column."""
        drawn = self._uniform(direction)
        length = torch.linalg.vector_norm(drawn, dim=1, keepdim=True).clamp_(min=SHORTEST)
        return direction.sign().mul_(drawn).mul_(self.noise / length).add_(direction)

    def mask(self, like: Tensor) -> Tensor:
        """1 where a number is sent, 0 where it is dropped."""
        return self._uniform(like).ge_(self.dropout)

    def _uniform(self, like: Tensor) -> Tensor:
        """Numbers in [0, 1), as many as `like` has."""
        if not isinstance(self.generator, np.random.Generator):
            return torch.rand(like.shape, generator=self.generator, device=like.device)
        return torch.from_numpy(self.generator.random(tuple(like.shape), dtype=np.float32)).to(like.device)


@dataclass(frozen=True)
class Layer:
    """What one layer was made from."""

    direction: Tensor
    """z, (n_nodes, d)"""
    length: Tensor
    """‖y‖, (n_nodes, 1)"""
    sent: Tensor
    """ẑ, (n_nodes, d)"""
    mask: Tensor | None
    """What dropout left, (n_nodes, d); None where nothing is dropped."""
    kept: Tensor
    """Sent and not dropped, (n_nodes, d)."""
    values: Tensor
    """What multiplies kept rows: weight, degree scaling, and what makes good for dropout.  (2 · n_edges,)."""
    slope: Tensor | None
    """`dw / dx`, (2 · n_edges,); None where it is 1."""
    gain: float
    """What makes good for dropout, `1 / (1 − dropout)`."""


class ApdaLayers:
    """The layers over a graph.  `share` is the part of the cosine that counts as closeness."""

    def __init__(
        self, graph: BipartiteGraph, n_layers: int, residual: float, scale: float, weighting: str, share: float
    ) -> None:
        self.graph, self.n_layers, self.residual = graph, n_layers, residual
        self.scale, self.weighting, self.share = scale, weighting, share
        self._scaling = graph.slot_values(graph.symmetric_weights())

    def walk(self, table: Tensor, perturbation: Perturbation | None) -> Iterator[tuple[Layer, Tensor]]:
        """Layer by layer, each with its result, the y of the next."""
        rows = table
        for _ in range(self.n_layers):
            layer = self._layer(rows, perturbation)
            rows = self._weighted_sum(layer.values, layer.kept)
            if self.residual:
                rows.add_(layer.direction, alpha=self.residual)
            yield layer, rows

    def _layer(self, rows: Tensor, perturbation: Perturbation | None) -> Layer:
        direction, length = unit(rows)
        sent = kept = direction
        mask, gain = None, 1.0
        if perturbation is not None:
            sent, mask = perturbation.perturbed(direction), perturbation.mask(direction)
            kept, gain = sent * mask, 1.0 / (1.0 - perturbation.dropout)
        distance = self._distance(sent)
        weight = distance_weight(distance, self.weighting) * self._scaling[: self.graph.n_edges]
        slope = distance_slope(distance, self.weighting)
        values = self.graph.slot_values(EdgeWeights(weight.mul_(gain)))
        slopes = None if slope is None else self.graph.slot_values(EdgeWeights(slope))
        return Layer(direction, length, sent, mask, kept, values, slopes, gain)

    def _distance(self, sent: Tensor) -> Tensor:
        """The scaled distance x of every edge's ends, (n_edges,)."""
        cosine = edge_dots(self.graph, sent[: self.graph.n_users], sent[self.graph.n_users :])
        return cosine.mul_(-2.0 * self.share / self.scale).add_(2.0 / self.scale)

    def _weighted_sum(self, values: Tensor, rows: Tensor) -> Tensor:
        return KERNELS["bag"](self.graph.indptr, self.graph.neighbours, values, rows)

    def before(self, layer: Layer, by_result: Tensor) -> Tensor:
        """Gradient in a layer's directions z from that in its result.  (n_nodes, d)."""
        by_sent = self._weighted_sum(layer.values, by_result)  # symmetric, so its own transpose
        if layer.mask is not None:
            by_sent.mul_(layer.mask)
        by_distance = self._by_distance(layer, by_result)
        by_sent.add_(self._weighted_sum(by_distance, layer.sent), alpha=-2.0 * self.share * layer.gain / self.scale)
        return by_sent.add_(by_result, alpha=self.residual) if self.residual else by_sent

    def _by_distance(self, layer: Layer, by_result: Tensor) -> Tensor:
        """Gradient in the distances but for the gain; row v holds what v sends, not what it hears.  (2 · n_edges,)."""
        graph, n, n_edges = self.graph, self.graph.n_users, self.graph.n_edges
        found = torch.empty_like(layer.values)
        for place, dots in (
            (slice(n_edges), edge_dots(graph, layer.kept[:n], by_result[n:])),
            (slice(n_edges, None), edge_dots(graph, by_result[:n], layer.kept[n:], item_order=True)),
        ):
            torch.mul(dots, self._scaling[place], out=found[place])
        return found if layer.slope is None else found.mul_(layer.slope)

    def readout(self, table: Tensor) -> Tensor:
        """Read-out of all nodes, without noise and dropout.  (n_nodes, d)."""
        total = table.clone()
        for number, (layer, result) in enumerate(self.walk(table, None)):
            if number == 0:
                total.sub_(layer.direction, alpha=self.n_layers * self.residual)
            total.add_(result)
        return total.div_(self.n_layers + 1)

    def readout_rows(
        self, table: Tensor, perturbation: Perturbation | None, nodes: Tensor
    ) -> tuple[Tensor, list[Layer]]:
        """Read-out of these nodes, (nodes, d), and the layers, which the way back needs."""
        total, layers = table.index_select(0, nodes), []
        for layer, result in self.walk(table, perturbation):
            layers.append(layer)
            total.add_(result.index_select(0, nodes))
        if layers and self.residual:
            total.sub_(layers[0].direction.index_select(0, nodes), alpha=self.n_layers * self.residual)
        return total.div_(self.n_layers + 1), layers

    def gradient(self, layers: list[Layer], nodes: Tensor, by_readout: Tensor) -> Tensor:
        """Gradient in the table from that in the read-out of these distinct nodes; empties the list.  (n_nodes, d)."""
        own = by_readout / (self.n_layers + 1)
        by_rows = own.new_zeros(self.graph.n_nodes, own.shape[1]).index_copy_(0, nodes, own)
        while layers:
            layer = layers.pop()
            by_direction = self.before(layer, by_rows)
            if not layers and self.residual:
                add_rows_(by_direction, nodes, own * (-self.n_layers * self.residual))
            by_rows = add_rows_(unit_gradient_(by_direction, layer.direction, layer.length), nodes, own)
        return by_rows


class ReadoutRows(torch.autograd.Function):
    """The read-out of some distinct nodes as a function of the table."""

    @staticmethod
    def forward(
        ctx: Any, table: Tensor, layers: ApdaLayers, perturbation: Perturbation | None, nodes: Tensor
    ) -> Tensor:
        """Read-out of the nodes, (nodes, d)."""
        readout, ctx.walked = layers.readout_rows(table, perturbation, nodes)
        ctx.layers, ctx.nodes = layers, nodes
        return readout

    @staticmethod
    def backward(ctx: Any, by_readout: Tensor) -> tuple[Tensor, None, None, None]:
        """Gradient in the table, (n_nodes, d)."""
        walked, ctx.walked = ctx.walked, None  # let go on the way: there is one way back
        return ctx.layers.gradient(walked, ctx.nodes, by_readout), None, None, None
