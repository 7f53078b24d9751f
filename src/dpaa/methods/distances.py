"""How much two sets of vectors of the same nodes have to do with each other."""

from __future__ import annotations

import torch
from torch import Tensor

LEAST = 1e-12
"""Added where a root is taken: its gradient at 0 would be infinite."""


def distance_correlation(one: Tensor, two: Tensor) -> Tensor:
    """Székely's distance correlation of rows, from 0 (nothing) to 1 (a similarity map).  A scalar; n × n memory.

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
