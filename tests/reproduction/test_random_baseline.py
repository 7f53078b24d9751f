"""The expected values of a random ranking, against every ranking there is."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import polars as pl
import pytest

from dpaa.data.dataset import Dataset
from dpaa.evaluation.evaluator import OVERLAPS
from dpaa.reproduction.random_baseline import random_ranking

TRAIN = {0: {0, 1}, 1: {2}, 2: {0, 1, 2, 3}}
TEST = {0: {1, 2, 5}, 1: {3}, 2: {3}}


def data(candidates: list[int] | None = None) -> Dataset:
    def frame(sets: dict[int, set[int]]) -> pl.DataFrame:
        pairs = [(user, item) for user, items in sets.items() for item in sorted(items)]
        return pl.DataFrame(pairs, schema={"user_id": pl.Int64, "item_id": pl.Int64}, orient="row")

    allowed = None if candidates is None else pl.Series("item_id", candidates)
    frames = {"train": frame(TRAIN | {3: {4}}), "test": frame(TEST)}
    return Dataset.of(frames, name="toy", candidates=allowed, about={})  # type: ignore[arg-type]


def slowly(overlap: str, allowed: set[int], k: int) -> dict[str, float]:
    """Mean over users of the mean over all orders."""
    per_user = []
    for user, liked in TEST.items():
        ranked = allowed - TRAIN[user] | (liked & allowed if overlap == "keep" else set())
        relevant = (liked & allowed) - (TRAIN[user] if overlap == "drop" else set())
        if not relevant:
            continue
        values = []
        for order in permutations(ranked):
            hits = [item in relevant for item in order[:k]]
            gain = sum(1 / np.log2(place + 2) for place, hit in enumerate(hits) if hit)
            best = sum(1 / np.log2(place + 2) for place in range(min(len(relevant), k)))
            values.append((sum(hits) / len(relevant), gain / best, float(any(hits))))
        per_user.append(np.mean(values, axis=0))
    return dict(zip((f"recall@{k}", f"ndcg@{k}", f"hit@{k}"), np.mean(per_user, axis=0), strict=True))


@pytest.mark.parametrize("overlap", OVERLAPS)
@pytest.mark.parametrize("candidates", [None, [1, 2, 3, 5]])
def test_the_formulas_are_the_mean_over_all_rankings(overlap: str, candidates: list[int] | None) -> None:
    expected = slowly(overlap, set(candidates or range(6)), 2)
    assert random_ranking(data(candidates), overlap, 2) == pytest.approx(expected)
