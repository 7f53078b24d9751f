"""Reg, UBPR, relMF, PD and PDA: numbers by hand, formulas, neutral settings."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dpaa.methods._popularity import propensity
from dpaa.methods.lightgcn import LightGCN
from dpaa.methods.pd import PD, PDA
from dpaa.methods.reg import Reg
from dpaa.methods.relmf import RelMF, relevance_error
from dpaa.methods.rows import squared_correlation
from dpaa.methods.samplers import AnyItemSampler
from dpaa.methods.ubpr import UBPR
from tests.methods.spec import ITEMS, USERS, spec_graph, triples
from tests.methods.tools import even_graph, l2_of, loss_of, readout_of, sigmoid, some_graph, started, trained

SPEC = {"embedding_size": 2, "l2": 0}


def test_reg_by_hand() -> None:
    """All seven training pairs."""
    graph = spec_graph()
    score = (USERS @ ITEMS.T)[graph.edge_user.long(), graph.edge_item.long()]
    found = squared_correlation(graph.item_degree[graph.edge_item.long()], score)
    assert found.item() == pytest.approx(0.01935, abs=1e-5)
    batch, rows = triples(*((int(u), int(i), 0) for u, i in zip(graph.edge_user, graph.edge_item, strict=True)))
    terms = [started(Reg, graph, **SPEC, correlation_weight=weight).loss(batch, rows).item() for weight in (0, 2)]
    assert terms[1] - terms[0] == pytest.approx(2 * 0.01935, abs=2e-5)


def test_reg_without_weight_is_lightgcn_bit_for_bit() -> None:
    graph = some_graph()
    plain = trained(LightGCN, graph)
    assert torch.equal(trained(Reg, graph, correlation_weight=0).ego.rows(), plain.ego.rows())
    assert not torch.equal(trained(Reg, graph).ego.rows(), plain.ego.rows())


def test_propensities_by_hand() -> None:
    found = propensity(spec_graph().item_degree, 0.5, 0.01)
    assert found.tolist() == pytest.approx([1, 0.8165, 0.5774, 0.5774], abs=1e-4)
    assert propensity(torch.tensor([0.0, 4.0]), 0.5, 0.1).tolist() == pytest.approx([0.1, 1.0])
    assert propensity(torch.zeros(2), 0.0, 0.1).tolist() == [1, 1]


def test_ubpr_by_hand() -> None:
    batch, rows = triples((0, 1, 2))
    method = started(UBPR, spec_graph(), **SPEC)
    assert method.loss(batch, rows).item() == pytest.approx(0.58062, abs=1e-5)
    assert started(LightGCN, spec_graph(), **SPEC).loss(batch, rows).item() == pytest.approx(0.47408, abs=1e-5)


def test_ubpr_equals_the_formula() -> None:
    graph = some_graph()
    method = started(UBPR, graph, embedding_size=8, layers=2, l2=0.01, lowest_term=0.3)
    assert isinstance(method.sampler, AnyItemSampler)
    taken = set(zip(graph.edge_user.tolist(), graph.edge_item.tolist(), strict=True))
    batch = next(method.batches(1))
    final, n = readout_of(method), graph.n_users
    theta = np.maximum((graph.item_degree / graph.item_degree.max()).numpy() ** 0.5, 0.05)
    terms = []
    for u, i, j in zip(batch.users.tolist(), batch.positive.tolist(), batch.negative.tolist(), strict=True):
        weight = (1 - ((u, j) in taken) / theta[j]) / theta[i]
        terms.append(max(-0.3, weight * np.logaddexp(0, -final[u] @ (final[n + i] - final[n + j]))))
    assert any(term < 0 for term in terms)  # some negative item was taken
    assert min(terms) >= -0.3
    assert loss_of(method, batch) == pytest.approx(np.mean(terms) + l2_of(method, batch), abs=1e-5)


def test_ubpr_without_propensities_is_lightgcn_bit_for_bit() -> None:
    graph = some_graph()
    neutral = trained(UBPR, graph, propensity_power=0, negatives="untaken")
    assert torch.equal(neutral.ego.rows(), trained(LightGCN, graph).ego.rows())
    even = even_graph()
    assert torch.equal(trained(UBPR, even, negatives="untaken").ego.rows(), trained(LightGCN, even).ego.rows())


def test_any_item_may_be_the_negative_one() -> None:
    method = started(UBPR, spec_graph())
    drawn = torch.cat([batch.negative for epoch in range(1, 300) for batch in method.batches(epoch)])
    share = torch.bincount(drawn, minlength=4) / len(drawn)
    torch.testing.assert_close(share, torch.full((4,), 0.25), atol=0.05, rtol=0)


def test_relmf_by_hand() -> None:
    inverse = torch.where(
        torch.tensor([True, True, False, False]), 1 / propensity(spec_graph().item_degree, 0.5, 0.01), 0
    )
    found = relevance_error((USERS @ ITEMS.T)[0], inverse)
    assert found.tolist() == pytest.approx([0.0723, 0.0875, 0.25, 0.5344], abs=1e-4)
    batch, rows = triples((0, 1, 3))
    expected = (0.0875 + 0.5344) / 2
    assert started(RelMF, spec_graph(), **SPEC).loss(batch, rows).item() == pytest.approx(expected, abs=1e-4)


def test_relmf_without_propensities_is_a_squared_error() -> None:
    method = started(RelMF, some_graph(), embedding_size=8, propensity_power=0, unclicked_weight=3)
    batch = next(method.batches(1))
    final, n = readout_of(method), method.graph.n_users
    chance = [
        sigmoid(np.sum(final[batch.users] * final[n + items], axis=1)) for items in (batch.positive, batch.negative)
    ]
    expected = np.mean((1 - chance[0]) ** 2 + 3 * chance[1] ** 2) / 4 + l2_of(method, batch)
    assert loss_of(method, batch) == pytest.approx(expected, abs=1e-6)


def test_pd_by_hand() -> None:
    batch, rows = triples((0, 1, 2))
    for kind in (PD, PDA):
        method = started(kind, spec_graph(), **SPEC, popularity_power=0.2)
        assert method.loss(batch, rows).item() == pytest.approx(0.44447, abs=1e-5)
    method.user_embedding, method.item_embedding = USERS, ITEMS
    found = method.scorer()(torch.tensor([0]))[0]
    assert found.tolist() == pytest.approx([2, 1.3832, 0.8027, 1.6055], abs=1e-4)
    some = torch.tensor([3, 1])
    torch.testing.assert_close(method.scorer(some)(torch.tensor([0]))[0], found[some])


def test_without_a_power_both_rank_by_the_scores() -> None:
    graph = some_graph()
    methods = [trained(kind, graph, popularity_power=0) for kind in (PD, PDA)]
    assert torch.equal(methods[0].ego.rows(), methods[1].ego.rows())
    plain, product = (method.scorer()(torch.arange(graph.n_users)) for method in methods)
    assert torch.equal(plain.argsort(dim=1, stable=True), product.argsort(dim=1, stable=True))


def test_who_was_never_taken_has_a_factor_too() -> None:
    method = started(PDA, some_graph(), popularity_power=1)
    assert (method.factor > 0).all()
