"""Views of the same nodes that a contrast compares: noisy layers, and layers of a graph with some edges left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import normalize

from dpaa.graph.bipartite import BipartiteGraph, EdgeWeights
from dpaa.graph.propagation import Propagation


def same_sign_noise(length: float, generator: torch.Generator) -> Callable[[Tensor], Tensor]:
    """A change of layers that moves every row by so much, within its orthant: `x + ε sign(x) v / ‖v‖`, v uniform."""

    def changed(layer: Tensor) -> Tensor:
        drawn = normalize(torch.rand(layer.shape, generator=generator, device=layer.device))
        return layer + drawn.mul_(layer.detach().sign()).mul_(length)

    return changed


def noisy_readout(
    propagation: Propagation, table: Tensor, noise: float, generator: torch.Generator, with_first: bool, nodes: Tensor
) -> Tensor:
    """The mean of layers to each of which noise is added before it is handed on, of these nodes.  (nodes, d)."""
    layers = propagation.differentiable_layers(table, same_sign_noise(noise, generator))
    return mean_of_layers([layer.index_select(0, nodes) for layer in layers], with_first)


def moved(rows: Tensor, values: Tensor) -> Tensor:
    """These values, with the gradient of the rows.

    Layers are linear in the table, so noise moves a read-out by what does not depend on the table (but for signs, which
    have no gradient): the way back of a noisy read-out is that of the clean one, and needs no second walk.
    """
    return rows + (values - rows).detach()


def mean_of_layers(layers: Sequence[Tensor], with_first: bool) -> Tensor:
    """Their mean, layer 0 included or not (it is all there is where nothing is propagated).  (n_nodes, d)."""
    counted = list(layers) if with_first or len(layers) == 1 else list(layers[1:])
    total = counted[0]
    for layer in counted[1:]:
        total = total + layer
    return total / len(counted)


def thinned_weights(graph: BipartiteGraph, dropped: float, generator: torch.Generator) -> EdgeWeights:
    """LightGCN's weights on the graph without a share of its edges, degrees counted there; 0 for what is left out."""
    kept = int(graph.n_edges * (1.0 - dropped))
    count = torch.zeros(graph.n_edges, device=graph.edge_user.device)
    chosen = torch.randperm(graph.n_edges, generator=generator, device=count.device)[:kept]
    count[chosen] = graph.edge_count[chosen]
    weight = count.clone()
    for side, n in ((graph.edge_user, graph.n_users), (graph.edge_item, graph.n_items)):
        degree = torch.zeros(n, device=count.device).index_add_(0, side, count)
        weight *= degree.clamp(min=1e-12).rsqrt().masked_fill(degree == 0, 0.0).index_select(0, side)
    return EdgeWeights(weight)
