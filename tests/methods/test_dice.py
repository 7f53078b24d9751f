from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dpaa.methods._clusters import distance_correlation
from dpaa.methods.dice import DICE
from dpaa.methods.lightgcn import LightGCN
from dpaa.methods.samplers import MarginSampler
from tests.methods.tools import l2_of, loss_of, readout_of, some_graph, started, trained


def test_without_terms_and_with_uniform_negatives_it_is_lightgcn_bit_for_bit() -> None:
    graph = some_graph()
    off = {"interest_weight": 0, "conformity_weight": 0, "discrepancy_weight": 0}
    plain = trained(LightGCN, graph)
    assert torch.equal(trained(DICE, graph, negatives="uniform", **off).ego.rows(), plain.ego.rows())
    assert not torch.equal(trained(DICE, graph, negatives="uniform").ego.rows(), plain.ego.rows())


@pytest.mark.parametrize("epoch", [1, 3])
@pytest.mark.parametrize("size", [8, 7])
def test_loss_equals_the_formula(epoch: int, size: int) -> None:
    graph, n = some_graph(), some_graph().n_users
    weights = {"interest_weight": 0.3, "conformity_weight": 0.7, "discrepancy_weight": 0.2, "decay": 0.5}
    method = started(DICE, graph, embedding_size=size, layers=2, l2=0.01, margin=1, pool=1, **weights)
    batch = next(method.batches(epoch))
    final, half = readout_of(method), -(-size // 2)
    u, i, j = (part.numpy() for part in (batch.users, batch.positive, batch.negative))
    count, shrunk = graph.item_degree.numpy(), 0.5 ** (epoch - 1)
    difference = final[u] * (final[n + i] - final[n + j])
    likes, follows = difference[:, :half].sum(axis=1), difference[:, half:].sum(axis=1)
    popular = count[j] > count[i]
    assert 0 < popular.mean() < 1
    expected = np.mean(np.logaddexp(0, -likes - follows)) + l2_of(method, batch)
    expected += shrunk * 0.3 * np.mean(popular * np.logaddexp(0, -likes))
    expected += shrunk * 0.7 * np.mean(np.where(popular, np.logaddexp(0, follows), np.logaddexp(0, -follows)))
    for nodes in (np.unique(u), n + np.unique([i, j])):
        rows = torch.from_numpy(final[nodes])
        expected += 0.2 * distance_correlation(rows[:, :half], rows[:, half:]).item()
    assert loss_of(method, batch) == pytest.approx(expected, abs=1e-4)


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
    assert isinstance(method.sampler, MarginSampler)
    assert method.sampler.margin == 2
    largest = method.graph.item_degree.max().item()
    assert started(DICE, some_graph()).first_margin == pytest.approx(largest / 10)
