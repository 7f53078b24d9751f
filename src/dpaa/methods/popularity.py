"""Popularity as methods use it: functions of training counts alone."""

from __future__ import annotations

import torch
from torch import Tensor

from dpaa.graph.bipartite import BipartiteGraph


def capped_inverse(counts: Tensor, quantile: float) -> Tensor:
    """Inverse popularity `r_i = max_j n_j / n_i`, `n = counts + 1`, capped at a quantile of r, divided by its maximum.

    At the median (0.5) every item at or below median popularity gets 1 and the popular half is damped.  (n_items,).
    """
    smoothed = counts + 1.0  # an item without interactions has a finite weight
    inverse = smoothed.max() / smoothed
    capped = inverse.clamp(max=torch.quantile(inverse.double(), quantile).float().item())
    return capped / capped.max()


def chance_of_being_drawn(graph: BipartiteGraph, sampler: str) -> Tensor:
    """How likely an item is to be the positive one of a triple, by the sampler's name.  (n_items,), sum 1."""
    if sampler == "interaction":
        return graph.item_degree / graph.item_degree.sum()
    share = graph.edge_count / graph.user_degree.index_select(0, graph.edge_user)
    found = torch.zeros_like(graph.item_degree).index_add_(0, graph.edge_item, share)
    return found / found.sum()


def propensity(counts: Tensor, power: float, floor: float) -> Tensor:
    """How likely an item was to be seen: `max((d_i / max d)^power, floor)`.  (n_items,)."""
    return (counts / counts.max().clamp(min=1.0)).pow(power).clamp(min=floor)
