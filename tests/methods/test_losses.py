"""Losses, weights and scores that no golden array covers, against their formulas and numbers by hand."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dpaa import CVIB, NAVIP, SSM, CausE, InvCF, LightGCN, Reg
from dpaa.data.pairs import Pairs
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods._shared import capped_inverse, distance_correlation, propensity, squared_correlation
from dpaa.methods.base import attach
from dpaa.methods.samplers import BalancedSampler, MarginSampler
from dpaa.methods.tables import Tables
from tests.graph import reference
from tests.methods.tools import (
    ITEMS,
    USERS,
    l2_of,
    loss_of,
    matrix_of,
    readout_of,
    sigmoid,
    some_graph,
    spec_graph,
    started,
    triples,
)

SPEC = {"embedding_size": 2, "l2": 0}


@pytest.mark.parametrize(
    ("quantile", "expected"),
    [(0.5, [0.5, 1.0, 1.0]), (1.0, [0.1, 0.2, 1.0]), (0.0, [1.0, 1.0, 1.0]), (0.75, [1 / 6, 2 / 6, 1.0])],
)
def test_capped_inverse_by_hand(quantile: float, expected: list[float]) -> None:
    """Counts 9, 4 and 0 become 10, 5 and 1, their inverses 1, 2 and 10; three quarters lie at 6."""
    assert capped_inverse(torch.tensor([9.0, 4.0, 0.0]), quantile).tolist() == pytest.approx(expected)


def test_propensities_by_hand() -> None:
    found = propensity(spec_graph().item_degree, 0.5, 0.01)
    assert found.tolist() == pytest.approx([1, 0.8165, 0.5774, 0.5774], abs=1e-4)
    assert propensity(torch.tensor([0.0, 4.0]), 0.5, 0.1).tolist() == pytest.approx([0.1, 1.0])


def test_reg_by_hand() -> None:
    """All seven training pairs."""
    graph = spec_graph()
    score = (USERS @ ITEMS.T)[graph.edge_user.long(), graph.edge_item.long()]
    found = squared_correlation(graph.item_degree[graph.edge_item.long()], score)
    assert found.item() == pytest.approx(0.01935, abs=1e-5)
    batch, rows = triples(*((int(u), int(i), 0) for u, i in zip(graph.edge_user, graph.edge_item, strict=True)))
    terms = [started(Reg, graph, **SPEC, correlation_weight=weight).loss(batch, rows).item() for weight in (0, 2)]
    assert terms[1] - terms[0] == pytest.approx(2 * 0.01935, abs=2e-5)


def test_the_coin_of_balanced_negatives_is_fair_and_each_side_uniform() -> None:
    graph = some_graph(seed=3)
    user, item = graph.edge_user.numpy(), graph.edge_item.numpy()
    sampler = BalancedSampler(user, item, np.ones(len(user), np.int64), graph.n_users, graph.n_items)
    popularity, taken = graph.item_degree.numpy(), set(zip(user.tolist(), item.tolist(), strict=True))
    user, item = next((u, i) for u, i in sorted(taken) if popularity[i] == np.median(popularity[popularity > 0]))
    negative = sampler.draw_negative(np.random.default_rng(0), np.full(40_000, user), np.full(40_000, item))
    free = np.array([candidate for candidate in range(len(popularity)) if (user, candidate) not in taken])
    above, below = free[popularity[free] > popularity[item]], free[popularity[free] < popularity[item]]
    assert min(len(above), len(below)) > 1
    share = np.bincount(negative, minlength=len(popularity)) / 40_000
    np.testing.assert_allclose(share[above], 0.5 / len(above), atol=0.01)
    np.testing.assert_allclose(share[below], 0.5 / len(below), atol=0.01)


@given(seed=st.integers(0, 40), margin=st.sampled_from([0.0, 1.0, 3.0, 100.0]), pool=st.sampled_from([1, 4, 1000]))
def test_negative_items_with_a_margin_are_untaken_and_on_a_side(seed: int, margin: float, pool: int) -> None:
    graph = some_graph(seed=seed)
    user, item = graph.edge_user.numpy(), graph.edge_item.numpy()
    sampler = MarginSampler(user, item, np.ones(len(user), np.int64), graph.n_users, graph.n_items)
    sampler.margin, sampler.pool = margin, pool
    taken, count = set(zip(user.tolist(), item.tolist(), strict=True)), graph.item_degree.numpy()
    users, positive, negative = sampler.epoch(np.random.default_rng(seed), "user-uniform")
    for u, i, j in zip(users.tolist(), positive.tolist(), negative.tolist(), strict=True):
        free = [one for one in range(graph.n_items) if (u, one) not in taken]
        above = [one for one in free if count[one] > count[i] + margin]
        below = [one for one in free if count[one] < count[i] / 2]
        wanted = min(pool, max(len(above), len(below)))
        sides = [side for side in (above, below) if len(side) >= wanted and side]
        assert any(j in side for side in sides) if sides else j in free


def test_cvib_equals_the_formula() -> None:
    graph = some_graph()
    method = started(CVIB, graph, embedding_size=8, layers=2, agreement_weight=0.7, confidence_weight=0.2, l2=0.01)
    batch, final, n = next(method.batches(1)), readout_of(method), graph.n_users
    u, i, j = batch.users.numpy(), batch.positive.numpy(), batch.negative.numpy()
    positive, negative = np.sum(final[u] * final[n + i], axis=1), np.sum(final[u] * final[n + j], axis=1)
    p = sigmoid(np.concatenate([positive, negative]))
    q = sigmoid(np.sum(final[batch.more_users[0]] * final[n + batch.more_items[0].numpy()], axis=1))
    entropy = -np.mean(np.concatenate([np.log(sigmoid(positive)), np.log(1 - sigmoid(negative))]))
    agreed = -p.mean() * np.log(q.mean()) - (1 - p.mean()) * np.log(1 - q.mean())
    expected = entropy + 0.7 * agreed + 0.2 * np.mean(p * np.log(p)) + l2_of(method, batch)
    assert loss_of(method, batch) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("log_q", [False, True])
@pytest.mark.parametrize("negatives", ["batch", "drawn"])
def test_ssm_equals_the_formula(negatives: str, log_q: bool) -> None:
    graph, n = some_graph(), some_graph().n_users
    how = {"embedding_size": 8, "layers": 2, "l2": 0, "n_negatives": 9, "temperature": 0.1}
    method = started(SSM, graph, **how, negatives=negatives, log_q=log_q)
    batch, final = next(method.batches(1)), readout_of(method)
    unit = final / np.linalg.norm(final, axis=1, keepdims=True)
    columns = batch.more_items[0] if negatives == "drawn" else batch.positive
    q = np.full(20, 1 / 20) if negatives == "drawn" else method.positive_chance.double().numpy()
    many, total = len(columns) - (negatives == "batch"), 0.0
    for number, (user, item) in enumerate(zip(batch.users.tolist(), batch.positive.tolist(), strict=True)):
        logits = [unit[user] @ unit[n + item] / 0.1]
        for other, column in enumerate(columns.tolist()):
            if negatives == "drawn" or other != number:
                logits.append(unit[user] @ unit[n + column] / 0.1 - (np.log(many * q[column]) if log_q else 0))
        total += np.logaddexp.reduce(logits) - logits[0]
    assert loss_of(method, batch) == pytest.approx(total / len(batch), abs=2e-5)


def test_invcf_holds_taste_and_popularity_apart_by_distance_correlation() -> None:
    """A golden array has the other terms."""
    graph, n = some_graph(), some_graph().n_users
    size = {"embedding_size": 8, "layers": 2, "l2": 0.01, "popularity_weight": 0.3, "mixed_weight": 0.5}
    plain, method = (started(InvCF, graph, **size, discrepancy_weight=weight) for weight in (0, 0.7))
    batch, final = next(method.batches(1)), torch.from_numpy(readout_of(method)).float()
    popularity = []
    for table, degree in ((method.user_popularity, graph.user_degree), (method.item_popularity, graph.item_degree)):
        levels = sorted(set(degree.tolist()))
        popularity.append(table.detach().numpy()[[levels.index(one) for one in degree.tolist()]])
    edges = graph.edge_user.numpy(), graph.edge_item.numpy()
    weight = reference.symmetric_weights(n, graph.n_items, *edges)
    matrix = reference.adjacency(n, graph.n_items, *edges, weight, weight)
    spread = torch.from_numpy(reference.readout([matrix] * 2, np.concatenate(popularity).astype(float))).float()
    expected = loss_of(plain, batch)
    for nodes in (batch.users.unique(), batch.positive.unique() + n):
        expected += 0.7 * distance_correlation(final[nodes], spread[nodes]).item()
    assert loss_of(method, batch) == pytest.approx(expected, abs=1e-4)


SAMPLE = Pairs.of([0, 1, 1, 5, 9, 9], [3, 4, 7, 3, 0, 11])


def test_cause_equals_the_formula() -> None:
    method = attach(CausE(embedding_size=8, layers=2, agreement_weight=0.3), some_graph())
    method.take(SAMPLE)
    Tables.start(method)
    batch = next(method.batches(1))
    other = started(LightGCN, BipartiteGraph.from_pairs(SAMPLE, 30, 20), embedding_size=8, layers=2)
    other.tables.ego.copy_(method.treatment.detach())
    z, t = readout_of(method), readout_of(other)

    def entropy(vectors: np.ndarray, users: torch.Tensor, positive: torch.Tensor, negative: torch.Tensor) -> float:
        good = np.sum(vectors[users] * vectors[positive + 30], axis=1)
        bad = np.sum(vectors[users] * vectors[negative + 30], axis=1)
        return float(np.mean(np.log1p(np.exp(-good)) + np.log1p(np.exp(bad))))

    randomised = method.randomised_triples(batch)
    drawn = sorted(zip(randomised[0].tolist(), randomised[1].tolist(), strict=True))
    assert drawn == sorted(zip(SAMPLE.user.tolist(), SAMPLE.item.tolist(), strict=True))
    expected = entropy(z, batch.users, batch.positive, batch.negative) + entropy(t, *randomised) + l2_of(method, batch)
    gap, items = (z - t) ** 2, torch.cat([batch.positive, batch.negative]) + 30
    expected += 0.3 * (gap[batch.users].mean() + gap[items].mean())
    assert loss_of(method, batch) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("normalisation", ["symmetric", "row", "lightgcn-times-ip"])
def test_navip_equals_the_formula(normalisation: str) -> None:
    graph = some_graph()
    weights = started(NAVIP, graph, propensity_power=3, smallest_propensity=0.1, normalisation=normalisation)
    taken, degree = matrix_of(graph), graph.item_degree.double().numpy()
    inverse = taken / np.maximum((degree / degree.max()) ** 3, 0.1)
    users, items = (np.maximum(inverse.sum(axis=axis), 1e-12) for axis in (1, 0))
    expected = (
        inverse
        / {
            "symmetric": np.sqrt(np.outer(users, items)),
            "row": users[:, None],
            "lightgcn-times-ip": np.sqrt(np.outer(np.maximum(taken.sum(axis=1), 1), np.maximum(degree, 1))),
        }[normalisation]
    )
    found = weights.edge_weights(0)
    np.testing.assert_allclose(found.to_user, expected[graph.edge_user, graph.edge_item], rtol=1e-5)
    if normalisation == "row":
        np.testing.assert_allclose(found.back, 1 / degree[graph.edge_item], rtol=1e-5)
