from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaa.methods.dice import DICE
from dpaa.methods.samplers import MarginSampler
from tests.methods.tools import some_graph, started


@given(seed=st.integers(0, 40), margin=st.sampled_from([0.0, 1.0, 3.0, 100.0]), pool=st.sampled_from([1, 4, 1000]))
def test_negative_items_are_untaken_and_on_a_side(seed: int, margin: float, pool: int) -> None:
    graph = some_graph(seed=seed)
    user, item = graph.edge_user.numpy(), graph.edge_item.numpy()
    sampler = MarginSampler(user, item, np.ones(len(user), np.int64), graph.n_users, graph.n_items)
    sampler.margin, sampler.pool = margin, pool
    taken = set(zip(user.tolist(), item.tolist(), strict=True))
    count = graph.item_degree.numpy()
    users, positive, negative = sampler.epoch(np.random.default_rng(seed), "user-uniform")
    for u, i, j in zip(users.tolist(), positive.tolist(), negative.tolist(), strict=True):
        assert (u, j) not in taken
        free = [one for one in range(graph.n_items) if (u, one) not in taken]
        above = [one for one in free if count[one] > count[i] + margin]
        below = [one for one in free if count[one] < count[i] / 2]
        wanted = min(pool, max(len(above), len(below)))
        sides = [side for side in (above, below) if len(side) >= wanted and side]
        assert any(j in side for side in sides) if sides else j in free


def test_the_margin_shrinks() -> None:
    method = started(DICE, some_graph(), margin=8, decay=0.5)
    next(method.batches(3))
    assert isinstance(method.tables.sampler, MarginSampler)
    assert method.tables.sampler.margin == 2
    largest = method.graph.item_degree.max().item()
    assert started(DICE, some_graph()).first_margin == pytest.approx(largest / 10)
