"""Popularity weights, correlations, clusters and look-ups that several methods use."""

import numpy as np
import torch
from torch import Tensor

from dpaa.graph.bipartite import BipartiteGraph
from dpaa.graph.cooccurrence import KnownPairs, Lists
from dpaa.methods.base import Histories

LEAST = 1e-12
"""Added where a root is taken: its gradient at 0 would be infinite."""


def k_means(rows: Tensor, clusters: int, generator: torch.Generator, steps: int = 50) -> Tensor:
    """The cluster of each row, at most `clusters` of them (fewer where fewer rows differ).  (n,) int64."""
    if clusters == 1:
        return torch.zeros(len(rows), dtype=torch.int64, device=rows.device)
    centres = _seeds(rows, clusters, generator)
    nearest = _nearest(rows, centres)
    for _ in range(steps):
        sums = torch.zeros_like(centres).index_add_(0, nearest, rows)
        members = torch.bincount(nearest, minlength=len(centres))
        filled = members > 0  # a centre that lost all its rows stays where it is
        centres[filled] = sums[filled] / members[filled, None]
        before, nearest = nearest, _nearest(rows, centres)
        if torch.equal(before, nearest):
            break
    return nearest


def _nearest(rows: Tensor, centres: Tensor) -> Tensor:
    return (centres.square().sum(dim=1) - 2.0 * (rows @ centres.T)).argmin(dim=1)  # ‖x‖² is the same for all centres


def _seeds(rows: Tensor, clusters: int, generator: torch.Generator) -> Tensor:
    """Rows drawn with probability proportional to their squared distance from those drawn before.  (k, d)."""
    chosen = [int(torch.randint(len(rows), (1,), generator=generator))]
    # float64: the running sum over many rows must tell neighbours apart.
    distance = (rows - rows[chosen[0]]).square().sum(dim=1).double()
    while len(chosen) < clusters and distance.sum() > 0:
        target = torch.rand((), generator=generator, dtype=torch.float64).to(rows.device) * distance.sum()
        chosen.append(min(int(torch.searchsorted(distance.cumsum(0), target, right=True)), len(rows) - 1))
        distance = torch.minimum(distance, (rows - rows[chosen[-1]]).square().sum(dim=1).double())
    return rows[chosen].clone()


def distance_correlation(one: Tensor, two: Tensor) -> Tensor:
    """Székely's distance correlation of rows, from 0 (independent) to 1 (a similarity map).  A scalar; n × n memory.

    dCor = √(dCov²(x, y) / √(dVar²(x) dVar²(y))),     dCov² = mean of A ∘ B, doubly centred distances
    """
    if len(one) < 2:
        return (one.sum() + two.sum()) * 0.0
    first, second = _centred_distances(one), _centred_distances(two)
    between, own, other = (first * second).mean(), first.square().mean(), second.square().mean()
    return torch.sqrt(between.clamp(min=0) / torch.sqrt(own * other + LEAST) + LEAST)


def _centred_distances(rows: Tensor) -> Tensor:
    # Not by products of rows: of near points little would be left of the distance, and of its gradient less.
    distances = torch.cdist(rows, rows, compute_mode="donot_use_mm_for_euclid_dist")
    return distances - distances.mean(dim=0) - distances.mean(dim=1, keepdim=True) + distances.mean()


def capped_inverse(counts: Tensor, quantile: float) -> Tensor:
    """Inverse popularity `r_i = max_j n_j / n_i`, `n = counts + 1`, capped at a quantile of r, divided by its maximum.

    At the median (0.5) every item at or below median popularity gets 1 and the popular half is damped.  (n_items,).
    """
    smoothed = counts + 1.0  # an item without interactions has a finite weight
    inverse = smoothed.max() / smoothed
    capped = inverse.clamp(max=torch.quantile(inverse.double(), quantile).float().item())
    return capped / capped.max()


def squared_correlation(one: Tensor, two: Tensor) -> Tensor:
    """Pearson's correlation over the batch, squared; 0 where either side is constant.  A scalar.

    Centred first, in float64; the small constant keeps the gradient finite and nothing else (values of order 1).
    """
    one, two = one.double() - one.double().mean(), two.double() - two.double().mean()
    return (torch.dot(one, two).square() / ((one.square().sum() + 1e-8) * (two.square().sum() + 1e-8))).float()


def propensity(counts: Tensor, power: float, floor: float) -> Tensor:
    """How likely an item was to be seen: `max((d_i / max d)^power, floor)`.  (n_items,)."""
    return (counts / counts.max().clamp(min=1.0)).pow(power).clamp(min=floor)


def items_of_users(graph: BipartiteGraph) -> Lists:
    """List each user's training items; a repeated pair counts once."""
    return Lists.of(graph.edge_user, graph.edge_item.long(), graph.n_users, graph.n_items)


def users_of_items(graph: BipartiteGraph) -> Lists:
    """List each item's training users."""
    order = graph.by_item
    return Lists.of(graph.edge_item[order], graph.edge_user[order].long(), graph.n_items, graph.n_users)


def items_of(graph: BipartiteGraph, histories: Histories | None) -> Lists:
    """List the items of the users to be scored: those of training, or those unseen in it."""
    if histories is None:
        return items_of_users(graph)
    pairs = histories.pairs
    user, item = (torch.from_numpy(part.astype(np.int64)).to(graph.device) for part in (pairs.user, pairs.item))
    return Lists.of(user, item, histories.n_users, graph.n_items)


def known_pairs(graph: BipartiteGraph) -> KnownPairs:
    """Set of the training pairs as `user · n_items + item`."""
    keys = graph.edge_user.long() * graph.n_items + graph.edge_item.long()
    return KnownPairs(keys, graph.n_users * graph.n_items)
