"""What a random ranking would give: a number below it is worse than chance."""

from __future__ import annotations

import math

import numpy as np

from dpaa.data.dataset import Dataset


def random_ranking(data: Dataset, overlap: str, k: int = 20) -> dict[str, float]:
    """Expected recall, NDCG and hit ratio of a uniformly random order of the items that are ranked.

    With N ranked items, R relevant ones that are ranked and T that are counted, per user:

        recall = k R / (N T),   hit = 1 − C(N−R, k) / C(N, k),   NDCG = (R / N) Σ_{r≤k} 1/log2(r+1) / iDCG(T)

    Test pairs that are also training pairs: `drop` neither ranks nor counts them, `mask` counts but does not rank
    them, `keep` does both.
    """
    allowed = np.ones(data.n_items, dtype=bool)
    if data.candidates is not None:
        allowed[:] = False
        allowed[data.candidates] = True
    train: list[set[int]] = [set() for _ in range(data.n_users)]
    test: list[set[int]] = [set() for _ in range(data.n_users)]
    for pairs, sets in ((data.train, train), (data.test, test)):
        for user, item in zip(pairs.user.tolist(), pairs.item.tolist(), strict=True):
            if allowed[item]:
                sets[user].add(item)
    gain = np.cumsum(1.0 / np.log2(np.arange(2, k + 2)))
    found: dict[str, list[float]] = {f"recall@{k}": [], f"ndcg@{k}": [], f"hit@{k}": []}
    for user in range(data.n_users):
        both = len(train[user] & test[user])
        counted = len(test[user]) - (both if overlap == "drop" else 0)
        ranked = int(allowed.sum()) - len(train[user]) + (both if overlap == "keep" else 0)
        reachable = len(test[user]) - (0 if overlap == "keep" else both)
        if not counted or not ranked:
            continue
        shown = min(k, ranked)
        found[f"recall@{k}"].append(shown * reachable / (ranked * counted))
        found[f"ndcg@{k}"].append(reachable / ranked * gain[shown - 1] / gain[min(counted, k) - 1])
        missed = math.comb(ranked - reachable, shown) / math.comb(ranked, shown)
        found[f"hit@{k}"].append(1.0 - missed)
    return {metric: float(np.mean(values)) for metric, values in found.items() if values}
