"""Who took what, as lists both ways: for methods that compare users or items by what they share."""

from __future__ import annotations

import numpy as np
import torch

from dpaa.data.pairs import Pairs
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.kernels.cooccurrence import Lists
from dpaa.kernels.known_pairs import KnownPairs
from dpaa.methods.base import Histories


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
