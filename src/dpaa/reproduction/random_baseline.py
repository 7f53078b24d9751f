"""What a random ranking would give: a number below it is worse than chance."""

from __future__ import annotations

import math

import numpy as np

from dpaa.data.dataset import Dataset
from dpaa.data.pairs import Pairs


def random_ranking(data: Dataset, overlap: str, k: int = 20) -> dict[str, float]:
    """Expected recall, NDCG and hit ratio of a uniformly random order of the items that are ranked.

    With N ranked items, R relevant ones that are ranked and T that are counted, per user:

        recall = k R / (N T),   hit = 1 − C(N−R, k) / C(N, k),   NDCG = (R / N) Σ_{r≤k} 1/log2(r+1) / iDCG(T)

    Test pairs that are also training pairs: `drop` neither ranks nor counts them, `mask` counts but does not rank
    them, `keep` does both.
    """
    allowed = set(range(data.n_items) if data.candidates is None else data.candidates.tolist())
    train, test = (_items_of_users(pairs, allowed) for pairs in (data.train, data.test))
    gain = np.cumsum(1.0 / np.log2(np.arange(2, k + 2)))
    found = []
    for user, relevant in test.items():
        known = train.get(user, set())
        both = len(known & relevant)
        counted = len(relevant) - (both if overlap == "drop" else 0)
        ranked = len(allowed) - len(known) + (both if overlap == "keep" else 0)
        reachable = len(relevant) - (0 if overlap == "keep" else both)
        if counted and ranked:
            shown = min(k, ranked)
            recall = shown * reachable / (ranked * counted)
            ndcg = reachable / ranked * gain[shown - 1] / gain[min(counted, k) - 1]
            found.append((recall, ndcg, 1.0 - math.comb(ranked - reachable, shown) / math.comb(ranked, shown)))
    names = (f"recall@{k}", f"ndcg@{k}", f"hit@{k}")
    return {name: float(np.mean(values)) for name, values in zip(names, zip(*found, strict=True), strict=False)}


def _items_of_users(pairs: Pairs, allowed: set[int]) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for user, item in sorted(zip(pairs.user.tolist(), pairs.item.tolist(), strict=True)):
        if item in allowed:
            found.setdefault(user, set()).add(item)
    return found
