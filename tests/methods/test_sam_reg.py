from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dpaa.methods.rows import squared_correlation
from dpaa.methods.sam_reg import SamReg
from dpaa.methods.samplers import BalancedSampler
from tests.methods.tools import l2_of, loss_of, readout_of, sigmoid, some_graph, started


@given(
    values=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=3, max_size=20),
    scale=st.sampled_from([-3.0, -1.0, 0.5, 2.0]),
    shift=st.floats(-2, 2),
)
def test_correlation_knows_no_affine_map(values: list[tuple[float, float]], scale: float, shift: float) -> None:
    one, two = torch.tensor(values, dtype=torch.float64).T
    if min(one.std(), two.std()) < 0.05:
        return
    plain = squared_correlation(one, two)
    torch.testing.assert_close(squared_correlation(scale * one + shift, two), plain, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(squared_correlation(one, scale * two + shift), plain, rtol=1e-4, atol=1e-5)
    assert 0 <= plain <= 1 + 1e-6


@pytest.mark.parametrize("two", [[0.3, 0.3, 0.3], [0.1, 0.5, 0.2], [0.4]])
def test_a_constant_side_gives_no_correlation_and_a_finite_gradient(two: list[float]) -> None:
    certainty = torch.tensor(two, requires_grad=True)
    found = squared_correlation(torch.full((len(two),), 0.7), certainty)
    found.backward()
    assert found.item() == pytest.approx(0, abs=1e-6)
    assert torch.isfinite(certainty.grad).all()  # type: ignore[arg-type]


@pytest.mark.parametrize("popularity", ["count", "capped_inverse"])
def test_loss_equals_the_formula(popularity: str) -> None:
    graph = some_graph()
    method = started(SamReg, graph, embedding_size=8, layers=2, correlation_weight=0.3, popularity=popularity, l2=0.01)
    batch = next(method.batches(1))
    final, n = readout_of(method), graph.n_users
    u, i, j = batch.users.numpy(), batch.positive.numpy(), batch.negative.numpy()
    margin = np.sum(final[u] * (final[n + i] - final[n + j]), axis=1)
    count = graph.item_degree.double().numpy()
    inverse = (count.max() + 1) / (count + 1)
    pop = count / count.sum() if popularity == "count" else np.minimum(inverse, np.median(inverse))
    correlation = np.corrcoef(pop[i], sigmoid(margin))[0, 1] ** 2
    expected = 0.7 * (np.mean(np.logaddexp(0, -margin)) + l2_of(method, batch)) + 0.3 * correlation
    assert loss_of(method, batch) == pytest.approx(expected, abs=1e-4)


def sampler_of(seed: int) -> tuple[BalancedSampler, np.ndarray, set[tuple[int, int]]]:
    graph = some_graph(seed=seed)
    user, item = graph.edge_user.numpy(), graph.edge_item.numpy()
    sampler = BalancedSampler(user, item, np.ones(len(user), np.int64), graph.n_users, graph.n_items)
    return sampler, graph.item_degree.numpy(), set(zip(user.tolist(), item.tolist(), strict=True))


@given(seed=st.integers(0, 50))
def test_the_other_item_is_never_liked(seed: int) -> None:
    sampler, _, taken = sampler_of(seed)
    users, _, negative = sampler.epoch(np.random.default_rng(seed), "user-uniform")
    assert not taken & set(zip(users.tolist(), negative.tolist(), strict=True))


def test_the_coin_is_fair_and_each_side_uniform() -> None:
    sampler, popularity, taken = sampler_of(3)
    user, item = next((u, i) for u, i in sorted(taken) if popularity[i] == np.median(popularity[popularity > 0]))
    n = 40_000
    users, positive = np.full(n, user), np.full(n, item)
    negative = sampler.draw_negative(np.random.default_rng(0), users, positive)
    free = np.array([candidate for candidate in range(len(popularity)) if (user, candidate) not in taken])
    above, below = free[popularity[free] > popularity[item]], free[popularity[free] < popularity[item]]
    assert len(above) > 1
    assert len(below) > 1
    share = np.bincount(negative, minlength=len(popularity)) / n
    np.testing.assert_allclose(share[above], 0.5 / len(above), atol=0.01)
    np.testing.assert_allclose(share[below], 0.5 / len(below), atol=0.01)
