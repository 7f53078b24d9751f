"""Models with drawn vectors: as large as a test needs, without training."""

from typing import Any

import numpy as np
import polars as pl
import torch

from dpaa import LightGCN, Model
from dpaa.data.pairs import Pairs
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods.base import attach


def drawn_model(
    n_users: int = 120, n_items: int = 1003, size: int = 24, seed: int = 0, text: bool = True, candidates: bool = False
) -> Model:
    """LightGCN as it might have come out of training; popularity is skewed."""
    rng, generator = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
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
        pl.Series([f"i{one:0{max(5, len(str(n_items)))}d}" for one in items]) if text else pl.Series(items * 11 - 40),
        pairs,
        np.flatnonzero(rng.random(n_items) < 0.7) if candidates else None,
        {"dataset": {"name": "drawn", "path": None}, "dial": drawn_curve()},
    )


def drawn_choice(baseline: str = "lightgcn") -> dict[str, Any]:
    """What a manifest keeps of a choice of `dpaa debias`: FA*IR at 0.6 over LightGCN, both with the dial at 2."""
    settings = {"depth": 100, "strength": 0.6, "significance": 0.1, "head_share": 0.8}
    fair = {"name": "fa-ir", "settings": settings, "origin": None}
    base = {"name": baseline, "model": baseline, "popularity_dial": 2.0, "rerank": None}
    chosen = {"name": "lightgcn + fa-ir 0.6", "model": "lightgcn", "popularity_dial": 2.0, "rerank": fair}
    sides = [side | {"metrics": {"ndcg@20": ndcg}} for side, ndcg in ((base, 0.25), (chosen, 0.24))]
    sentences = [f"lightgcn + fa-ir 0.6 instead of {baseline}", "promised: at least 95% of NDCG@20"]
    dial = drawn_curve() | {"kappa": 2.0, "chosen_for": "debias"}
    return {"dial": dial, "rerank": fair, "debias": {"base": sides[0], "chosen": sides[1], "sentences": sentences}}


def drawn_curve() -> dict[str, Any]:
    """A stored curve of the dial."""
    points = [
        {"kappa": kappa, "ndcg@20": 0.1 - 0.01 * kappa**2, "recall@20": 0.2 - 0.02 * kappa**2}
        | {"recall@20/niche": 0.05 - 0.01 * kappa, "arp@20": 30 + 10 * kappa, "coverage@20": 0.4 - 0.1 * kappa}
        for kappa in (-2.0, -1.0, 0.0, 1.0, 2.0)
    ]
    exposure = {"biased": True, "known": True, "tilt": None}
    chosen = {"kappa": 0.0, "chosen_for": None, "suggested": 0.0, "objective": "ndcg", "k": 20, "users": 100}
    return chosen | {"curve": points, "exposure": exposure}
