from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods.lightgcn import LightGCN
from dpaa.methods.navip import NAVIP
from tests.methods.tools import TOY_EGO, some_graph, started, trained


def test_toy_weights_and_first_layer(toy_graph: BipartiteGraph) -> None:
    method = started(NAVIP, toy_graph, embedding_size=1, layers=1)
    torch.testing.assert_close(method.inverse_propensity(), torch.tensor([1.0, 2**0.5, 1.0]))
    expected = torch.tensor([0.4551, 0.7654, 0.7071])
    torch.testing.assert_close(method.edge_weights(0).to_user, expected, rtol=0, atol=1e-4)
    method.tables.restore({"ego": TOY_EGO})
    _, first = method.tables.propagation.layers(method.tables.ego)
    np.testing.assert_allclose(first.rows().squeeze(1), [4.4267, 2.1213, 1.8693, 0.7654, 0.0], atol=1e-4)


@pytest.mark.parametrize("normalisation", ["symmetric", "row"])
def test_a_constant_factor_of_all_propensities_changes_nothing(
    normalisation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = some_graph()
    plain = started(NAVIP, graph, normalisation=normalisation, smallest_propensity=0).edge_weights(0)
    usual = NAVIP.inverse_propensity
    monkeypatch.setattr(NAVIP, "inverse_propensity", lambda self: 7.0 * usual(self))
    scaled = started(NAVIP, graph, normalisation=normalisation, smallest_propensity=0).edge_weights(0)
    torch.testing.assert_close(scaled.to_user, plain.to_user)
    torch.testing.assert_close(scaled.back, plain.back)


@given(seed=st.integers(0, 30), power=st.floats(0, 2))
def test_by_rows_a_users_weights_sum_to_one(seed: int, power: float) -> None:
    graph = some_graph(seed=seed)
    weights = started(NAVIP, graph, normalisation="row", propensity_power=power).edge_weights(0)
    users, items = torch.zeros(graph.n_users), torch.zeros(graph.n_items)
    users.index_add_(0, graph.edge_user, weights.to_user)
    items.index_add_(0, graph.edge_item, weights.back)
    torch.testing.assert_close(users, (graph.user_degree > 0).float())
    torch.testing.assert_close(items, (graph.item_degree > 0).float())


def test_small_propensities_are_bounded() -> None:
    graph = some_graph()
    free = started(NAVIP, graph, propensity_power=3, smallest_propensity=0).inverse_propensity()
    bounded = started(NAVIP, graph, propensity_power=3, smallest_propensity=0.1).inverse_propensity()
    assert free.max() > 10
    assert bounded.max() == pytest.approx(10)


def test_at_inference_only_the_training_is_lightgcns() -> None:
    graph = some_graph()
    plain, late = trained(LightGCN, graph), trained(NAVIP, graph, applied="inference")
    assert torch.equal(late.tables.ego.rows(), plain.tables.ego.rows())
    assert not torch.equal(late.user_embedding, plain.user_embedding)
    early = started(NAVIP, graph, embedding_size=40, layers=2)
    early.tables.restore(plain.tables.snapshot())
    early.finish()
    assert torch.equal(early.user_embedding, late.user_embedding)
