"""K-means with k-means++ seeds and Lloyd's steps, and the distance correlation."""

from __future__ import annotations

import torch
from torch import Tensor

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
