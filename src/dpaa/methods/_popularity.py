"""Popularity as methods use it: functions of training counts alone."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from dpaa.data.pairs import Pairs
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
    pairs: Pairs = histories.pairs
    user, item = (
        torch.from_numpy(part.astype(np.int64)).to(graph.edge_user.device) for part in (pairs.user, pairs.item)
    )
    return Lists.of(user, item, histories.n_users, graph.n_items)


def known_pairs(graph: BipartiteGraph) -> KnownPairs:
    """The training pairs, to ask whether `user · n_items + item` is one of them."""
    keys = graph.edge_user.long() * graph.n_items + graph.edge_item.long()
    return KnownPairs(keys, graph.n_users * graph.n_items)
