"""KMeans, small: k-means++ seeds, then Lloyd's steps until nothing moves."""

from __future__ import annotations

import torch
from torch import Tensor


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
        again = _nearest(rows, centres)
        if torch.equal(again, nearest):
            break
        nearest = again
    return nearest


def _nearest(rows: Tensor, centres: Tensor) -> Tensor:
    """The argmin of `‖x − c‖²`; `‖x‖²` is the same for all centres."""
    return (centres.square().sum(dim=1) - 2.0 * (rows @ centres.T)).argmin(dim=1)


def _seeds(rows: Tensor, clusters: int, generator: torch.Generator) -> Tensor:
    """Rows drawn with probability proportional to their squared distance from those drawn before.  (k, d)."""
    place = int(torch.randint(len(rows), (1,), generator=generator))
    chosen = [place]
    distance = (rows - rows[place]).square().sum(dim=1).double()
    while len(chosen) < clusters and distance.sum() > 0:
        target = torch.rand((), generator=generator, dtype=torch.float64).to(rows.device) * distance.sum()
        place = min(int(torch.searchsorted(distance.cumsum(0), target, right=True)), len(rows) - 1)
        chosen.append(place)
        distance = torch.minimum(distance, (rows - rows[place]).square().sum(dim=1).double())
    return rows[chosen].clone()
