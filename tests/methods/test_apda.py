import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import normalize, softplus

from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods.apda import APDA, PERTURBATION
from tests.methods.tools import gradient_of, some_graph, started


@pytest.mark.parametrize(("similarity", "expected"), [("cosine", 0.0), ("cosine/D", (2 - 2 / 8) / 1.1)])
def test_identical_vectors_under_both_similarities(similarity: str, expected: float) -> None:
    graph = some_graph()
    method = started(APDA, graph, embedding_size=8, layers=1, similarity=similarity)
    method.tables.restore({"ego": torch.ones(graph.n_nodes, 8)})
    weight = method.edge_weights(0).to_user / method.graph.symmetric_weights().to_user
    torch.testing.assert_close(weight, torch.full_like(weight, expected), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("weighting", "expected"), [("linear", 1.8182), ("exponential", 6.0639)])
def test_weights_of_orthogonal_vectors_by_hand(toy_graph: BipartiteGraph, weighting: str, expected: float) -> None:
    """Edges u0–i0, u0–i1, u1–i0, of which the first joins orthogonal vectors, the others equal ones."""
    method = started(APDA, toy_graph, embedding_size=2, layers=1, weighting=weighting)
    method.tables.restore({"ego": torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]])})
    weight = method.edge_weights(0).to_user / toy_graph.symmetric_weights().to_user
    assert weight[0].item() == pytest.approx(expected, abs=1e-4)
    assert weight[1].item() == pytest.approx(0.0 if weighting == "linear" else 0.5 * np.log(2), abs=1e-4)


def slow_readout(method: APDA, table: Tensor, draws: np.random.Generator) -> Tensor:
    """The definition in training, edge by edge, in float64."""
    graph = method.graph
    users, items = graph.edge_user.long(), graph.edge_item.long() + graph.n_users
    receiver, sender = torch.cat([users, items]), torch.cat([items, users])
    scaling = graph.symmetric_weights().to_user.double().repeat(2)
    initial, layer, total = normalize(table), table, table
    for _ in range(method.layers):
        z = normalize(layer + method.residual * initial)
        noise, dropping = (torch.from_numpy(draws.random(z.shape, dtype=np.float32)) for _ in range(2))
        sent = z + method.noise * z.sign() * normalize(noise.double())
        kept = sent * (dropping >= method.dropout) / (1 - method.dropout)
        cosine = torch.sum(sent.detach()[receiver] * sent[sender], dim=1)
        if method.similarity == "cosine/D":
            cosine = cosine / table.shape[1]
        x = (2 - 2 * cosine) / method.scale
        weight = x if method.weighting == "linear" else 0.5 * x.exp() * softplus(x)
        received = torch.zeros_like(table).index_add(0, receiver, (scaling * weight)[:, None] * kept[sender])
        layer = received + method.residual * (z - initial)
        total = total + layer
    return total / (method.layers + 1)


@pytest.mark.parametrize("layers", [0, 1, 3])
@given(
    weighting=st.sampled_from(["linear", "exponential"]),
    similarity=st.sampled_from(["cosine", "cosine/D"]),
    noise=st.sampled_from([0.0, 0.1, 0.3]),
    dropout=st.sampled_from([0.0, 0.4, 0.8]),
    residual=st.sampled_from([0.0, 0.6, 1.2]),
    seed=st.integers(0, 99),
)
@settings(max_examples=20, deadline=None)
def test_value_and_gradient_are_those_of_the_definition(layers: int, seed: int, **chosen: object) -> None:
    graph = some_graph(seed=seed)
    method = started(APDA, graph, embedding_size=12, layers=layers, seed=seed, **chosen)
    batch = next(method.batches(3))
    rows = method.tables.forward(batch)
    wanted = torch.randn(rows.readout.shape, generator=torch.Generator().manual_seed(seed))
    torch.sum(rows.readout * wanted).backward()
    found = gradient_of(method, rows).double()

    table = method.tables.ego.rows().double().requires_grad_()
    draws = np.random.default_rng([method.seed, PERTURBATION, batch.epoch, batch.number])
    readout = slow_readout(method, table, draws)[batch.nodes(graph.n_users)]
    torch.sum(readout * wanted.double()).backward()
    torch.testing.assert_close(rows.readout.double(), readout, rtol=1e-4, atol=1e-5 * readout.abs().max().item())
    torch.testing.assert_close(found, table.grad, rtol=1e-3, atol=1e-4 * table.grad.abs().max().item())
