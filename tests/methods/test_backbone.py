from __future__ import annotations

import numpy as np
import pytest
import torch
from dpaa.methods.settings import TrainedSettings
from hypothesis import given
from hypothesis import strategies as st

from dpaa.data.pairs import Pairs
from dpaa.errors import InputError
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods.base import Histories
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.lightgcn import LightGCN
from dpaa.methods.macr import MACR
from dpaa.methods.rows import Batch
from tests.conftest import random_pairs
from tests.methods.tools import some_graph, started


class ByAutograd(GraphMethod):
    """LightGCN by automatic differentiation.  Changes: nothing but how gradients come about."""

    name = "by-autograd"
    title = "LightGCN by automatic differentiation"
    uses_whole_table = True


@pytest.mark.parametrize("layers", [0, 1, 3])
def test_both_ways_from_table_to_gradient_agree(layers: int) -> None:
    graph: BipartiteGraph = some_graph()
    slow, fast = (started(kind, graph, embedding_size=8, layers=layers, l2=0.01) for kind in (ByAutograd, LightGCN))
    batch = next(fast.batches(1))
    gradients = []
    for method in (slow, fast):
        rows = method.forward(batch)
        method.loss(batch, rows).backward()
        gradients.append(torch.cat([method.tile_gradient(rows, tile) for tile in range(len(method.ego.tiles))], dim=1))
        method.finish()
    torch.testing.assert_close(*gradients, rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(slow.user_embedding, fast.user_embedding)
    torch.testing.assert_close(slow.item_message, fast.item_message)


def test_without_layers_only_the_rows_of_the_batch_get_a_gradient(graph: BipartiteGraph) -> None:
    method = started(LightGCN, graph, embedding_size=8, layers=0)
    batch = Batch(torch.tensor([3]), torch.tensor([1]), torch.tensor([2]))
    rows = method.forward(batch)
    method.loss(batch, rows).backward()
    gradient = method.tile_gradient(rows, 0)
    touched = gradient.abs().sum(dim=1).nonzero().squeeze(1).tolist()
    assert touched == [3, 31, 32]


def test_fold_in_is_one_aggregation_over_the_item_vectors(graph: BipartiteGraph) -> None:
    """A newcomer with user u's history gets u's own layers 1..L, when u has no influence on its items."""
    method = started(LightGCN, graph, embedding_size=10, layers=1)
    method.finish()
    user = int(graph.edge_user[0])
    mine = graph.edge_user == user
    items = graph.edge_item[mine].numpy()
    folded = method.fold_in(Histories(Pairs.of(np.zeros(len(items)), items), 1))
    own = method.user_embedding[user] - method.ego.rows()[user] / 2  # read-out without layer 0
    torch.testing.assert_close(folded[0], own, rtol=1e-5, atol=1e-6)


@given(length=st.integers(1, 6), seed=st.integers(0, 100))
def test_fold_in_does_not_depend_on_the_order_of_the_history(length: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = BipartiteGraph.from_pairs(random_pairs(rng, 10, 8, 0.5), 10, 8)
    method = started(LightGCN, graph, embedding_size=4, layers=2)
    method.finish()
    items = rng.choice(8, length, replace=False)
    one = method.fold_in(Histories(Pairs.of(np.zeros(length), items), 1))
    two = method.fold_in(Histories(Pairs.of(np.zeros(length), items[::-1]), 1))
    assert torch.equal(one, two)


def test_layers_that_are_not_there_cannot_speak_to_newcomers(graph: BipartiteGraph) -> None:
    method = started(LightGCN, graph, embedding_size=4, layers=0)
    method.finish()
    with pytest.raises(InputError, match="layers=0 cannot score users unseen in training; train with layers >= 1"):
        method.fold_in(Histories(Pairs.of([0], [0]), 1))


def test_a_state_is_a_copy_that_brings_everything_back(graph: BipartiteGraph) -> None:
    method = started(MACR, graph, embedding_size=40, layers=1)
    before = method.state()
    kept = {name: tensor.clone() for name, tensor in before.items()}
    method.ego.copy_(torch.zeros(graph.n_nodes, 40))
    for parameter in method.parameters.values():
        parameter.data.add_(1.0)
    assert all(torch.equal(before[name], tensor) for name, tensor in kept.items())
    assert not any(torch.equal(method.state()[name], tensor) for name, tensor in kept.items())
    method.load_state(before)
    assert all(torch.equal(method.state()[name], tensor) for name, tensor in kept.items())


def test_a_generator_is_a_function_of_seed_and_stream(graph: BipartiteGraph) -> None:
    def drawn(seed: int, *stream: int) -> float:
        return torch.rand(1, generator=LightGCN(graph, TrainedSettings(seed=seed)).generator(*stream)).item()

    assert drawn(1, 0) == drawn(1, 0)
    assert len({drawn(1, 0), drawn(2, 0), drawn(1, 1), drawn(1, 0, 1), drawn(2**63 - 1, 0)}) == 5
