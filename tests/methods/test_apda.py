from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from dpaa.graph.bipartite import EdgeWeights
from dpaa.methods import _apda_layers as apda_layers
from dpaa.methods._apda_layers import Perturbation
from dpaa.methods.apda import APDA
from dpaa.methods.lightgcn import LightGCN
from tests.methods.tools import some_graph, started, trained


@pytest.mark.parametrize(("similarity", "expected"), [("cosine", 0.0), ("cosine/D", (2 - 2 / 8) / 1.1)])
def test_identical_vectors_under_both_similarities(similarity: str, expected: float) -> None:
    graph = some_graph()
    method = started(APDA, graph, embedding_size=8, layers=1, similarity=similarity)
    method.load_state({"ego": torch.ones(graph.n_nodes, 8)})
    weight = method.edge_weights(0).to_user / method.graph.symmetric_weights().to_user
    torch.testing.assert_close(weight, torch.full_like(weight, expected), rtol=1e-5, atol=1e-6)


def dense_readout(method: APDA, table: Tensor, stop: bool = True) -> Tensor:
    """The definition: dense matrices, autograd, float64, no noise."""
    graph, settings = method.graph, method.settings
    nodes_u, nodes_i = graph.edge_user, graph.edge_item + graph.n_users
    scaling = torch.zeros(graph.n_nodes, graph.n_nodes, dtype=torch.float64)
    scaling[nodes_u, nodes_i] = scaling[nodes_i, nodes_u] = graph.symmetric_weights().to_user.double()

    def unit(x: Tensor) -> Tensor:
        return x / x.norm(dim=1, keepdim=True).clamp(min=1e-12)

    initial, layer, layers = unit(table), table, [table]
    for _ in range(settings.layers):
        z = unit(layer + settings.residual * initial)
        closeness = (z.detach() if stop else z) @ z.T
        if settings.similarity == "cosine/D":
            closeness = closeness / table.shape[1]
        x = (2 - 2 * closeness) / settings.scale
        weight = x if settings.weighting == "linear" else 0.5 * x.exp() * torch.nn.functional.softplus(x)
        layer = (scaling * weight) @ z + settings.residual * (z - initial)
        layers.append(layer)
    return torch.stack(layers).mean(0)


@pytest.mark.parametrize("weighting", ["linear", "exponential"])
@pytest.mark.parametrize("similarity", ["cosine", "cosine/D"])
def test_loss_and_gradient_equal_the_dense_definition(weighting: str, similarity: str) -> None:
    """The gradient too, which the definition lets through the sender and not through the receiver."""
    graph = some_graph()
    settings = {"weighting": weighting, "similarity": similarity, "noise": 0, "dropout": 0, "residual": 0.4, "l2": 0.01}
    method = started(APDA, graph, embedding_size=40, layers=3, **settings)
    batch = next(method.batches(1))
    rows = method.forward(batch)
    loss = method.loss(batch, rows)
    loss.backward()
    found = torch.cat([method.tile_gradient(rows, tile) for tile in range(2)], dim=1).double()

    def by_definition(stop: bool) -> tuple[float, Tensor]:
        table = method.ego.rows().double().requires_grad_()
        nodes = batch.nodes(graph.n_users)
        user, positive, negative = batch.split(dense_readout(method, table, stop)[nodes])
        margin = torch.sum(user * (positive - negative), dim=1)
        total = torch.nn.functional.softplus(-margin).mean() + 0.01 * 0.5 * table[nodes].square().sum() / len(batch)
        total.backward()
        assert table.grad is not None
        return total.item(), table.grad

    expected_loss, gradient = by_definition(stop=True)
    assert loss.item() == pytest.approx(expected_loss, rel=1e-5)
    torch.testing.assert_close(found, gradient, rtol=1e-4, atol=1e-4 * gradient.abs().max().item())
    through_both = by_definition(stop=False)[1]
    assert (found - gradient).abs().max() < 0.05 * (found - through_both).abs().max()


def test_without_its_parts_it_is_lightgcn(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = some_graph()
    monkeypatch.setattr(apda_layers, "unit", lambda rows: (rows, torch.ones(len(rows), 1)))
    monkeypatch.setattr(apda_layers, "unit_gradient_", lambda by_unit, *_: by_unit)
    monkeypatch.setattr(apda_layers, "distance_weight", lambda distance, _: torch.ones_like(distance))
    monkeypatch.setattr(apda_layers, "distance_slope", lambda distance, _: torch.zeros_like(distance))
    neutral = started(APDA, graph, embedding_size=40, layers=3, residual=0, noise=0, dropout=0)
    plain = started(LightGCN, graph, embedding_size=40, layers=3)
    assert torch.equal(neutral.ego.rows(), plain.ego.rows())
    neutral.finish()
    plain.finish()
    torch.testing.assert_close(neutral.user_embedding, plain.user_embedding)
    torch.testing.assert_close(neutral.item_embedding, plain.item_embedding)
    torch.testing.assert_close(neutral.item_message, plain.item_message)
    neutral, plain = (
        trained(kind, graph, **extra)  # type: ignore[arg-type]
        for kind, extra in ((APDA, {"residual": 0, "noise": 0, "dropout": 0}), (LightGCN, {}))
    )
    torch.testing.assert_close(neutral.ego.rows(), plain.ego.rows(), rtol=1e-3, atol=1e-4)


def test_noise_and_dropout_follow_the_place_of_the_batch_and_end_with_training() -> None:
    graph = some_graph()
    method = started(APDA, graph, batch_size=16)
    first, again = list(method.batches(2)), list(method.batches(2, start=3))
    readout = [method.forward(batch).readout for batch in (first[3], again[0], first[2])]
    assert torch.equal(readout[0], readout[1])
    assert readout[0].shape != readout[2].shape or not torch.equal(readout[0], readout[2])
    method.make_embeddings()
    before = method.user_embedding
    method.forward(first[0])
    method.make_embeddings()
    assert torch.equal(before, method.user_embedding)
    unit = torch.nn.functional.normalize(torch.randn(50, 8))
    draws = Perturbation(np.random.default_rng(9), noise=0.1, dropout=0.4)
    noisy = draws.perturbed(unit)
    torch.testing.assert_close((noisy - unit).norm(dim=1), torch.full((50,), 0.1))
    assert ((noisy - unit) * unit >= 0).all()
    mask = draws.mask(torch.ones(400, 50))
    assert set(mask.unique().tolist()) == {0.0, 1.0}
    assert mask.mean().item() == pytest.approx(0.6, abs=0.02)


def test_a_zero_row_gives_no_nan() -> None:
    graph = some_graph()
    method = started(APDA, graph, embedding_size=8, layers=2)
    ego = method.ego.rows()
    ego[0] = 0
    method.load_state({"ego": ego})
    batch = next(method.batches(1))
    rows = method.forward(batch)
    method.loss(batch, rows).backward()
    assert torch.isfinite(method.tile_gradient(rows, 0)).all()


def test_the_weights_in_the_run_are_those_of_the_trained_table() -> None:
    method = trained(APDA, some_graph())
    names = [name for name, _ in method.message_weights()]
    assert names == ["weight_0", "weight_back_0", "weight_1", "weight_back_1"]
    weights = method.edge_weights(1)
    assert isinstance(weights, EdgeWeights)
    torch.testing.assert_close(weights.to_user, weights.back)
    graph, table = method.graph, method.ego.rows()
    unit = torch.nn.functional.normalize
    sent = unit(table + method.settings.residual * unit(table))  # layer 0, noise and dropout off
    cosine = (sent[graph.edge_user] * sent[graph.n_users + graph.edge_item]).sum(dim=1)
    expected = (2 - 2 * cosine) / method.settings.scale * graph.symmetric_weights().to_user
    torch.testing.assert_close(method.edge_weights(0).to_user.detach(), expected, rtol=1e-4, atol=1e-6)
