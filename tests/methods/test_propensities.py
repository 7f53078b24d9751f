"""Reg, UBPR, relMF, PD and PDA: numbers by hand, formulas, neutral settings."""

from __future__ import annotations

import pytest
import torch

from dpaa.methods._popularity import propensity
from dpaa.methods.pd import PD, PDA
from dpaa.methods.reg import Reg
from dpaa.methods.rows import squared_correlation
from dpaa.methods.ubpr import UBPR
from tests.methods.tools import (
    ITEMS,
    USERS,
    ego_of,
    some_graph,
    spec_graph,
    started,
    trained,
    triples,
)

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


def test_propensities_by_hand() -> None:
    found = propensity(spec_graph().item_degree, 0.5, 0.01)
    assert found.tolist() == pytest.approx([1, 0.8165, 0.5774, 0.5774], abs=1e-4)
    assert propensity(torch.tensor([0.0, 4.0]), 0.5, 0.1).tolist() == pytest.approx([0.1, 1.0])
    assert propensity(torch.zeros(2), 0.0, 0.1).tolist() == [1, 1]


def test_any_item_may_be_the_negative_one() -> None:
    method = started(UBPR, spec_graph())
    drawn = torch.cat([batch.negative for epoch in range(1, 300) for batch in method.batches(epoch)])
    share = torch.bincount(drawn, minlength=4) / len(drawn)
    torch.testing.assert_close(share, torch.full((4,), 0.25), atol=0.05, rtol=0)


def test_without_a_power_both_rank_by_the_scores() -> None:
    graph = some_graph()
    methods = [trained(kind, graph, popularity_power=0) for kind in (PD, PDA)]
    assert torch.equal(ego_of(methods[0]), ego_of(methods[1]))
    plain, product = (method.scorer()(torch.arange(graph.n_users)) for method in methods)
    assert torch.equal(plain.argsort(dim=1, stable=True), product.argsort(dim=1, stable=True))
