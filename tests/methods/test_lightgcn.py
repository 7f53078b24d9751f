from __future__ import annotations

import numpy as np
import pytest
import torch
from dpaa.methods.settings import TrainedSettings

from dpaa.data.pairs import Pairs
from dpaa.graph import reference
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods.lightgcn import LightGCN
from dpaa.training.optimizer import TiledAdam
from tests.conftest import random_pairs

TOY_EGO = torch.tensor([[1.0], [2.0], [3.0], [4.0], [5.0]])


def started(graph: BipartiteGraph, **settings: object) -> LightGCN:
    method = LightGCN(graph, TrainedSettings(**settings))  # type: ignore[arg-type]
    method.start()
    return method


@pytest.mark.parametrize(
    ("layers", "users", "items"),
    [
        (1, [2.6642, 2.0607], [2.4571, 2.3536, 2.5]),
        (2, [2.2618, 1.8250], [2.8595, 2.5893, 1.6667]),
    ],
)
def test_toy_readout(toy_graph: BipartiteGraph, layers: int, users: list[float], items: list[float]) -> None:
    method = started(toy_graph, embedding_size=1, layers=layers)
    method.load_state({"ego": TOY_EGO})
    method.make_embeddings()
    np.testing.assert_allclose(method.user_embedding.squeeze(1), users, atol=1e-4)
    np.testing.assert_allclose(method.item_embedding.squeeze(1), items, atol=1e-4)


def test_toy_first_layer(toy_graph: BipartiteGraph) -> None:
    method = started(toy_graph, embedding_size=1, layers=1)
    method.load_state({"ego": TOY_EGO})
    _, first = method.propagation.layers(method.ego)
    np.testing.assert_allclose(first.rows().squeeze(1), [4.3284, 2.1213, 1.9142, 0.7071, 0.0], atol=1e-4)


@pytest.mark.parametrize("kernel", ["bag", "wide-bag", "csr"])
@pytest.mark.parametrize("layers", [0, 1, 2, 4])
def test_readout_equals_the_dense_reference(graph: BipartiteGraph, layers: int, kernel: str) -> None:
    method = started(graph, embedding_size=70, layers=layers, kernel=kernel)
    method.make_embeddings()
    user, item = graph.edge_user.numpy(), graph.edge_item.numpy()
    weight = reference.symmetric_weights(30, 20, user, item)
    matrix = reference.adjacency(30, 20, user, item, weight, weight)
    expected = reference.readout([matrix] * layers, method.ego.rows().double().numpy())
    found = torch.cat([method.user_embedding, method.item_embedding]).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("layers", [0, 2, 3])
def test_one_training_step_equals_the_dense_reference(graph: BipartiteGraph, layers: int) -> None:
    method = started(graph, embedding_size=40, layers=layers, learning_rate=0.01, l2=0.01)
    ego = method.ego.rows().double().numpy()
    batch = next(iter(method.batches(1)))
    user, item = graph.edge_user.numpy(), graph.edge_item.numpy()
    weight = reference.symmetric_weights(30, 20, user, item)
    matrices = [reference.adjacency(30, 20, user, item, weight, weight)] * layers
    nodes = batch.users.numpy(), batch.positive.numpy() + 30, batch.negative.numpy() + 30
    adam = TiledAdam(method)
    rows = method.forward(batch)
    loss = method.loss(batch, rows)
    loss.backward()
    expected_loss = reference.bpr_with_l2(reference.readout(matrices, ego), ego, *nodes, 0.01)
    assert loss.item() == pytest.approx(expected_loss, abs=1e-5)
    gradient = reference.bpr_with_l2_gradient(matrices, ego, *nodes, 0.01)
    found = torch.cat([method.tile_gradient(rows, tile) for tile in range(len(method.ego.tiles))], dim=1)
    np.testing.assert_allclose(found.numpy(), gradient, atol=1e-7)
    adam.step(rows, 0.01)
    updated = reference.adam_first_step(ego, gradient, 0.01)
    # A row that hears nothing of the batch has gradient 0 and stays; elsewhere Adam's first step is lr · sign.
    sure = np.abs(gradient) > 1e-6
    np.testing.assert_allclose(method.ego.rows().numpy()[sure], updated[sure], atol=1e-5)
    np.testing.assert_array_equal(method.ego.rows().numpy()[gradient == 0], ego[gradient == 0].astype(np.float32))


def test_relabelling_users_and_items_permutes_the_readout() -> None:
    rng = np.random.default_rng(4)
    pairs = random_pairs(rng, 12, 9)
    user_to, item_to = rng.permutation(12), rng.permutation(9)
    method = started(BipartiteGraph.from_pairs(pairs, 12, 9), embedding_size=6, layers=3)
    other = started(
        BipartiteGraph.from_pairs(Pairs.of(user_to[pairs.user], item_to[pairs.item]), 12, 9), embedding_size=6, layers=3
    )
    nodes = np.concatenate([user_to, 12 + item_to])
    ego = torch.empty(21, 6)
    ego[nodes] = method.ego.rows()
    other.load_state({"ego": ego})
    method.make_embeddings()
    other.make_embeddings()
    torch.testing.assert_close(other.user_embedding[user_to], method.user_embedding, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(other.item_embedding[item_to], method.item_embedding, rtol=1e-5, atol=1e-6)


def test_batches_depend_on_seed_and_epoch_alone(graph: BipartiteGraph) -> None:
    one, two = started(graph, batch_size=16), started(graph, batch_size=16)
    first, again = list(one.batches(3)), list(two.batches(3))
    assert all(
        torch.equal(a.users, b.users) and torch.equal(a.negative, b.negative) for a, b in zip(first, again, strict=True)
    )
    later = list(one.batches(3, start=2))
    assert torch.equal(later[0].users, first[2].users)
    assert not torch.equal(next(one.batches(4)).users, first[0].users)
