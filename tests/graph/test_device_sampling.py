from __future__ import annotations

import numpy as np
import pytest
import torch

from dpaa.data.pairs import Pairs
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.graph.device_sampling import DeviceSampler
from tests.conftest import random_pairs


def drawn(pairs: Pairs, shape: tuple[int, int], how: str, epochs: int, any_item: bool = False) -> np.ndarray:
    sampler = DeviceSampler(BipartiteGraph.from_pairs(pairs, *shape), any_item)
    draws = [sampler.epoch(torch.Generator().manual_seed(seed), how) for seed in range(epochs)]
    return np.stack([torch.cat(parts).numpy() for parts in zip(*draws, strict=True)])


@pytest.mark.parametrize("how", ["user-uniform", "interaction"])
def test_positive_items_are_taken_and_negative_ones_are_not(how: str) -> None:
    pairs = random_pairs(np.random.default_rng(2), 12, 9, 0.4)
    users, positive, negative = drawn(pairs, (12, 9), how, 30)
    taken = set(zip(pairs.user.tolist(), pairs.item.tolist(), strict=True))
    assert {*zip(users.tolist(), positive.tolist(), strict=True)} == taken
    untaken = {(user, item) for user in set(users.tolist()) for item in range(9)} - taken
    assert {*zip(users.tolist(), negative.tolist(), strict=True)} == untaken


def test_every_interaction_comes_once_an_epoch_and_a_pair_that_counts_twice_comes_twice() -> None:
    pairs = Pairs.of([0, 0, 1, 2, 2], [0, 1, 1, 0, 2], count=np.array([1, 2, 1, 3, 1]))
    users, positive, _ = drawn(pairs, (4, 5), "interaction", 1)
    seen = sorted(zip(users.tolist(), positive.tolist(), strict=True))
    assert seen == [(0, 0), (0, 1), (0, 1), (1, 1), (2, 0), (2, 0), (2, 0), (2, 2)]


def test_draws_are_as_likely_as_they_should_be() -> None:
    """User 3 took nothing, user 2 everything: neither is drawn.  Of 40,000 draws each share is within 2 %."""
    pairs = Pairs.of([0, 0, 1, 2, 2, 2, 2], [0, 1, 3, 0, 1, 2, 3], count=np.array([1, 3, 1, 1, 1, 1, 2]))
    users, positive, negative = drawn(pairs, (4, 4), "user-uniform", 8_000)
    assert set(users.tolist()) == {0, 1}
    assert abs((users == 0).mean() - 0.5) < 0.02
    assert abs((positive[users == 0] == 1).mean() - 0.75) < 0.02
    for item in (0, 1, 2):
        assert abs((negative[users == 1] == item).mean() - 1 / 3) < 0.02
    anything = drawn(pairs, (4, 4), "user-uniform", 8_000, any_item=True)[2]
    assert all(abs((anything == item).mean() - 0.25) < 0.02 for item in range(4))
