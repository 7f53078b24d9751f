"""A model to export, and how far the lists of an index are its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import torch

from dpaa.data.pairs import Pairs
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods.base import attach
from dpaa.methods.lightgcn import LightGCN
from dpaa.runs.model import Model

KAPPAS = (-0.5, 0.0, 0.5)


def drawn_model(n_users: int, n_items: int, size: int, text: bool = True, candidates: bool = False) -> Model:
    """LightGCN as it might have come out of training; popularity is skewed."""
    rng, generator = np.random.default_rng(0), torch.Generator().manual_seed(0)
    weights = 1 / np.arange(1, n_items + 1)
    taken = rng.choice(n_items, size=n_users * 12, p=weights / weights.sum())
    pairs = Pairs.of(np.repeat(np.arange(n_users), 12), taken)
    method = attach(LightGCN(embedding_size=size, layers=2), BipartiteGraph.from_pairs(pairs, n_users, n_items))
    rows = {"user_embedding": n_users, "item_embedding": n_items, "item_message": n_items}
    state = {name: 0.3 * torch.randn(n, size, generator=generator) for name, n in rows.items()}
    state["item_embedding"] += 0.2
    method.load_state(state | {"user_ego": torch.zeros(n_users, size), "item_ego": torch.zeros(n_items, size)})
    users, items = np.arange(n_users), np.arange(n_items)
    return Model(
        method,
        pl.Series([f"u{one:05d}" for one in users]) if text else pl.Series(users * 7 + 3),
        pl.Series([f"i{one:05d}" for one in items]) if text else pl.Series(items * 11 - 40),
        pairs,
        np.flatnonzero(rng.random(n_items) < 0.7) if candidates else None,
        {"dataset": {"name": "drawn", "path": None}, "dial": {"kappa": 0.0, "suggested": 0.0}},
    )


def lists_of(model: Model, k: int, kappa: float) -> dict[Any, list[Any]]:
    """User → our exact list."""
    made: dict[Any, list[Any]] = {user: [] for user in model.user_ids.to_list()}
    for user, item, *_ in model.recommend(k=k, popularity_dial=kappa).iter_rows():
        made[user].append(item)
    return made


def equal_lists(expected: dict[Any, list[Any]], found: dict[Any, list[Any]]) -> float:
    """The share of users with the same items in the same order."""
    return sum(found[user] == listed for user, listed in expected.items()) / len(expected)
