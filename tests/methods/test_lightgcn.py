"""LightGCN and what every graph method inherits from it, against dense definitions and numbers by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dpaa.data.pairs import Pairs
from dpaa.errors import InputError
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.graph.propagation import TILE_COLUMNS
from dpaa.methods.base import Histories, attach
from dpaa.methods.lightgcn import LightGCN
from dpaa.methods.macr import MACR
from tests.graph import reference
from tests.methods.tools import TOY_EGO, WholeLightGCN, ego_of, gradient_of, readout_of, some_graph, started


def dense_adjacency(graph: BipartiteGraph) -> np.ndarray:
    user, item = graph.edge_user.numpy(), graph.edge_item.numpy()
    weight = reference.symmetric_weights(graph.n_users, graph.n_items, user, item)
    return reference.adjacency(graph.n_users, graph.n_items, user, item, weight, weight)


@pytest.mark.parametrize(
    ("layers", "expected"),
    [(1, [2.6642, 2.0607, 2.4571, 2.3536, 2.5]), (2, [2.2618, 1.8250, 2.8595, 2.5893, 1.6667])],
)
def test_toy_readout(toy_graph: BipartiteGraph, layers: int, expected: list[float]) -> None:
    method = started(LightGCN, toy_graph, embedding_size=1, layers=layers)
    method.tables.ego.copy_(TOY_EGO)
    np.testing.assert_allclose(readout_of(method)[:, 0], expected, atol=1e-4)


@pytest.mark.parametrize(("kernel", "layers"), [("bag", 0), ("bag", 2), ("wide-bag", 4), ("csr", 3)])
def test_readout_equals_the_dense_reference(kernel: str, layers: int) -> None:
    graph = some_graph()
    method = started(LightGCN, graph, embedding_size=70, layers=layers, kernel=kernel)
    expected = reference.readout([dense_adjacency(graph)] * layers, ego_of(method).double().numpy())
    np.testing.assert_allclose(readout_of(method), expected, atol=1e-6)


@pytest.mark.parametrize("layers", [0, 3])
def test_gradients_by_hand_and_by_autograd_agree(layers: int) -> None:
    graph, gradients = some_graph(), []
    methods = [started(kind, graph, embedding_size=8, layers=layers, l2=0.01) for kind in (WholeLightGCN, LightGCN)]
    for method in methods:
        batch = next(method.batches(1))
        rows = method.tables.forward(batch)
        method.loss(batch, rows).backward()
        gradients.append(gradient_of(method, rows))
        method.finish()
    torch.testing.assert_close(*gradients, rtol=1e-5, atol=1e-7)
    for part in ("user_embedding", "item_message"):
        torch.testing.assert_close(*(method.state()[part] for method in methods))


def test_batches_depend_on_seed_and_epoch_alone() -> None:
    one, two = (started(LightGCN, some_graph(), batch_size=16) for _ in range(2))
    first, again, later = list(one.batches(3)), list(two.batches(3)), next(one.batches(3, start=2))
    for a, b in [*zip(first, again, strict=True), (first[2], later)]:
        assert torch.equal(a.nodes(30), b.nodes(30))
    assert not torch.equal(next(one.batches(4)).users, first[0].users)


def test_fold_in_is_one_aggregation_over_the_item_vectors() -> None:
    """A new user with user u's history gets u's read-out without layer 0; item order and repeats of users aside."""
    graph = some_graph()
    method = started(LightGCN, graph, embedding_size=10, layers=1)
    method.finish()
    user = int(graph.edge_user[0])
    items = graph.edge_item[graph.edge_user == user].numpy()
    new = method.vectors(None, Histories(Pairs.of(np.zeros(len(items)), items[::-1].copy()), 1))
    own = method.user_embedding[user] - ego_of(method)[user] / 2
    torch.testing.assert_close(new.queries(torch.tensor([0]))[0], own, rtol=1e-5, atol=1e-6)


def test_without_layers_a_new_user_cannot_be_scored() -> None:
    method = started(LightGCN, some_graph(), embedding_size=4, layers=0)
    method.finish()
    with pytest.raises(InputError, match="layers=0 cannot score users unseen in training; train with layers >= 1"):
        method.scorer(None, Histories(Pairs.of([0], [0]), 1))


def test_a_snapshot_is_a_copy_that_restores_everything() -> None:
    tables = started(MACR, some_graph(), embedding_size=40, layers=1).tables
    before = tables.snapshot()
    kept = {name: tensor.clone() for name, tensor in before.items()}
    tables.ego.copy_(torch.zeros(50, 40))
    for parameter in tables.parameters.values():
        parameter.data.add_(1.0)
    assert all(torch.equal(before[name], tensor) for name, tensor in kept.items())
    assert not any(torch.equal(tables.snapshot()[name], tensor) for name, tensor in kept.items())
    tables.restore(before)
    assert all(torch.equal(tables.snapshot()[name], tensor) for name, tensor in kept.items())


@pytest.mark.parametrize(("count", "size", "batches"), [(1000, 2048, 1), (5_000_000, 10_000, 500)])
def test_automatic_batch_size_keeps_the_number_of_batches(count: int, size: int, batches: int) -> None:
    """Interactions of a pair count as often as they occurred."""
    graph = BipartiteGraph.from_pairs(Pairs.of([0], [0], [count]), 1, 2)
    compute = attach(LightGCN(batch_size="auto"), graph).compute
    assert (compute.batch_size, compute.n_batches) == (size, batches)


def test_threads_are_at_most_one_per_tile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpaa.methods.tables.cores", lambda: 3)
    graph, columns = some_graph(), TILE_COLUMNS["bag"]

    def threads(size: int, wanted: int | str) -> int:
        configured = LightGCN(embedding_size=size, threads=wanted, kernel="bag")
        return int(attach(configured, graph).compute.threads)

    assert [threads(size, 64) for size in (1, columns, columns + 1, 5 * columns)] == [1, 1, 2, 5]
    assert [threads(size, "auto") for size in (columns, 2 * columns, 5 * columns)] == [1, 2, 3]
