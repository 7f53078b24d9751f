"""Popularity as methods use it: functions of training counts alone."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from dpaa.graph.bipartite import BipartiteGraph
from dpaa.graph.cooccurrence import KnownPairs, Lists
from dpaa.methods.base import Histories


def capped_inverse(counts: Tensor, quantile: float) -> Tensor:
    """Inverse popularity `r_i = max_j n_j / n_i`, `n = counts + 1`, capped at a quantile of r, divided by its maximum.

    At the median (0.5) every item at or below median popularity gets 1 and the popular half is damped.  (n_items,).
    """
    smoothed = counts + 1.0  # an item without interactions has a finite weight
    inverse = smoothed.max() / smoothed
    capped = inverse.clamp(max=torch.quantile(inverse.double(), quantile).float().item())
    return capped / capped.max()


def degree_levels(graph: BipartiteGraph) -> tuple[Tensor, Tensor]:
    """Which of the counts that occur each user and each item has, numbered from 0.  (n_users,) and (n_items,)."""
    users, items = (torch.unique(degree, return_inverse=True)[1] for degree in (graph.user_degree, graph.item_degree))
    return users, items


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
    """Each user's training items; a repeated pair counts once."""
    return Lists.of(graph.edge_user, graph.edge_item.long(), graph.n_users, graph.n_items)


def users_of_items(graph: BipartiteGraph) -> Lists:
    """Each item's training users."""
    order = graph.by_item
    return Lists.of(graph.edge_item[order], graph.edge_user[order].long(), graph.n_items, graph.n_users)


def items_of(graph: BipartiteGraph, histories: Histories | None) -> Lists:
    """The items of the users to be scored: those of training, or those unseen in it."""
    if histories is None:
        return items_of_users(graph)
    pairs = histories.pairs
    user, item = (torch.from_numpy(part.astype(np.int64)).to(graph.device) for part in (pairs.user, pairs.item))
    return Lists.of(user, item, histories.n_users, graph.n_items)


def known_pairs(graph: BipartiteGraph) -> KnownPairs:
    """Set of the training pairs as `user · n_items + item`."""
    keys = graph.edge_user.long() * graph.n_items + graph.edge_item.long()
    return KnownPairs(keys, graph.n_users * graph.n_items)
