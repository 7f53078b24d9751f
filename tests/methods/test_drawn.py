"""APDA against loops, and softmax losses over drawn negatives: which of them count, and what is ranked by."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import normalize, softplus

from dpaa import DDC, METHODS, PSL, InputError, SLAtK
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods._drawn import DrawnSoftmax
from dpaa.methods.apda import APDA, PERTURBATION
from dpaa.methods.base import attach
from dpaa.methods.pretrained import Pretrained
from dpaa.methods.tables import Batch
from tests.methods.tools import gradient_of, loss_of, some_graph, spec_graph, started

USERS, POSITIVE, NEGATIVE = torch.tensor([0, 2]), torch.tensor([0, 3]), torch.tensor([2, 2])
"""User 0 took items 0 and 1, user 2 took 0, 1 and 3."""


def batch(*drawn: int) -> Batch:
    return Batch(USERS, POSITIVE, NEGATIVE, more_items=(torch.tensor(drawn),))


@pytest.mark.parametrize("name", ["psl", "bsl", "sl-at-k"])
def test_items_that_the_user_took_are_no_negatives(name: str) -> None:
    method = started(METHODS[name], spec_graph(), embedding_size=4, layers=1)  # type: ignore[arg-type]
    assert loss_of(method, batch(2, 1, 0, 1)) == pytest.approx(loss_of(method, batch(2)), abs=1e-6)
    assert loss_of(method, batch(2, 2)) != pytest.approx(loss_of(method, batch(2)), abs=1e-3)  # a draw counts


@pytest.mark.parametrize("kind", [DrawnSoftmax, PSL, SLAtK])
def test_who_took_all_drawn_items_keeps_them(kind: type[DrawnSoftmax]) -> None:
    method = started(kind, spec_graph(), embedding_size=4, layers=1)
    rows = method.tables.forward(batch(1, 0))
    method.loss(batch(1, 0), rows).backward()
    assert torch.isfinite(rows._distinct.grad).all()


def test_the_relu_of_opposite_vectors_has_a_finite_gradient() -> None:
    method = started(PSL, spec_graph(), embedding_size=2, layers=0, activation="relu")
    method.tables.restore({"ego": torch.tensor([[1.0, 0.0]] * 4 + [[1.0, 0.0], [-1.0, 0.0], [1.0, 0.0]])})
    rows = method.tables.forward(batch(2))
    loss = method.loss(batch(2), rows)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(rows._distinct.grad).all()


def test_ranked_by_cosine_or_by_inner_product() -> None:
    by_cosine, plain = (
        started(DrawnSoftmax, spec_graph(), layers=1, ranking=ranking) for ranking in ("cosine", "inner-product")
    )
    for method in (by_cosine, plain):
        method.finish()
    everybody, item_length = torch.arange(3), plain.item_embedding.norm(dim=1)
    expected = plain.scorer()(everybody) / (plain.user_embedding.norm(dim=1)[:, None] * item_length)
    torch.testing.assert_close(by_cosine.scorer()(everybody), expected)


def test_ddc_needs_the_layers_of_a_lightgcn_of_its_size() -> None:
    with pytest.raises(InputError, match="method ddc corrects a LightGCN of this dataset with embedding_size 64"):
        attach(DDC(), spec_graph()).take_pretrained(Pretrained(torch.zeros(7, 64)))


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
