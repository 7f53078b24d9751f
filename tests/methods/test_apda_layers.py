from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import normalize, softplus

from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods._apda_layers import ApdaLayers, distance_weight
from dpaa.methods.apda import APDA, PERTURBATION
from dpaa.methods.rows import Batch
from tests.methods.tools import some_graph, started


def draws_of(method: APDA, batch: Batch) -> np.random.Generator:
    return np.random.default_rng([method.seed, PERTURBATION, batch.epoch, batch.number])


def test_weights_of_orthogonal_and_identical_vectors(toy_graph: BipartiteGraph) -> None:
    layers = ApdaLayers(toy_graph, 1, residual=0.0, scale=1.1, weighting="linear", share=1.0)
    vectors = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]])  # edges u0–i0, u0–i1, u1–i0
    distance = layers._distance(vectors)
    torch.testing.assert_close(distance, torch.tensor([2 / 1.1, 0.0, 0.0]))
    assert distance_weight(distance, "linear")[0].item() == pytest.approx(1.8182, abs=1e-4)
    assert distance_weight(distance, "exponential")[0].item() == pytest.approx(6.0639, abs=1e-4)
    at_most = distance_weight(torch.tensor([4 / 1.1]), "exponential").item()
    assert at_most == pytest.approx(0.5 * math.exp(4 / 1.1) * math.log1p(math.exp(4 / 1.1)), rel=1e-5)


@pytest.mark.parametrize("layers", [0, 1, 3])
@given(
    weighting=st.sampled_from(["linear", "exponential"]),
    similarity=st.sampled_from(["cosine", "cosine/D"]),
    noise=st.sampled_from([0.0, 0.1, 0.3]),
    dropout=st.sampled_from([0.0, 0.4, 0.8]),
    residual=st.sampled_from([0.0, 0.6, 1.2]),
    scale=st.sampled_from([0.9, 1.1]),
    seed=st.integers(0, 99),
)
@settings(max_examples=30, deadline=None)
def test_the_gradient_by_hand_is_that_of_autograd(layers: int, seed: int, **chosen: object) -> None:
    """Value and gradient of any rows of the read-out, with the same draws of noise and dropout."""
    graph = some_graph(seed=seed)
    method = started(APDA, graph, embedding_size=12, layers=layers, seed=seed, **chosen)
    batch = next(method.batches(3))
    rows = method.tables.forward(batch)
    wanted = torch.randn(rows.readout.shape, generator=torch.Generator().manual_seed(seed))
    torch.sum(rows.readout * wanted).backward()
    found = method.tables.tile_gradient(rows, 0).double()

    table = method.tables.ego.rows().double().requires_grad_()
    readout = slow_readout(method, table, draws_of(method, batch))[batch.nodes(graph.n_users)]
    torch.sum(readout * wanted.double()).backward()
    assert table.grad is not None
    torch.testing.assert_close(rows.readout.double(), readout, rtol=1e-4, atol=1e-5 * readout.abs().max().item())
    torch.testing.assert_close(found, table.grad, rtol=1e-3, atol=1e-4 * table.grad.abs().max().item())


def slow_readout(method: APDA, table: Tensor, draws: np.random.Generator) -> Tensor:
    """The definition in training, edge by edge under autograd."""
    graph, chosen = method.graph, method
    users, items = graph.edge_user.long(), graph.edge_item.long() + graph.n_users
    receiver, sender = torch.cat([users, items]), torch.cat([items, users])
    scaling = graph.symmetric_weights().to_user.double().repeat(2)
    initial, layer, total = normalize(table), table, table
    for _ in range(chosen.layers):
        z = normalize(layer + chosen.residual * initial)
        noise, dropping = (torch.from_numpy(draws.random(z.shape, dtype=np.float32)) for _ in range(2))
        sent = z + chosen.noise * z.sign() * normalize(noise.double())
        kept = sent * (dropping >= chosen.dropout) / (1 - chosen.dropout)
        closeness = torch.sum(sent.detach()[receiver] * sent[sender], dim=1)
        if chosen.similarity == "cosine/D":
            closeness = closeness / table.shape[1]
        x = (2 - 2 * closeness) / chosen.scale
        weight = x if chosen.weighting == "linear" else 0.5 * x.exp() * softplus(x)
        heard = torch.zeros_like(table).index_add(0, receiver, (scaling * weight)[:, None] * kept[sender])
        layer = heard + chosen.residual * (z - initial)
        total = total + layer
    return total / (chosen.layers + 1)


def test_no_gradient_reaches_the_receiver_of_a_weight(toy_graph: BipartiteGraph) -> None:
    """User 0 hears items 0 and 1; what reaches its next layer goes to them, and to itself by the residual alone."""
    layers = ApdaLayers(toy_graph, 1, residual=0.5, scale=1.1, weighting="linear", share=1.0)
    (layer, result), *_ = layers.walk(torch.randn(5, 3), None)
    by_result = torch.zeros_like(result)
    by_result[0] = torch.tensor([1.0, 2.0, 3.0])
    found = layers.before(layer, by_result)
    torch.testing.assert_close(found[0], 0.5 * by_result[0])
    assert found.abs().sum(dim=1).nonzero().squeeze(1).tolist() == [0, 2, 3]
