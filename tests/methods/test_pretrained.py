"""Vectors of a model trained before: its layers, and a digest that knows every number."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dpaa.graph import reference
from dpaa.methods.lightgcn import LightGCN
from dpaa.methods.pretrained import Pretrained
from tests.methods.tools import some_graph, started


@pytest.mark.parametrize("n_layers", [0, 1, 4])
def test_layers_are_those_of_lightgcn_as_many_as_are_asked_for(n_layers: int) -> None:
    """Trained with two layers; any number can be had."""
    graph = some_graph()
    method = started(LightGCN, graph, embedding_size=6, layers=2)
    method.tables.update_embeddings()
    found = Pretrained.of(method, n_layers, {"run": "runs/plain"})
    user, item = graph.edge_user.numpy(), graph.edge_item.numpy()
    weight = reference.symmetric_weights(graph.n_users, graph.n_items, user, item)
    matrix = reference.adjacency(graph.n_users, graph.n_items, user, item, weight, weight)
    ego = method.tables.ego.rows().double().numpy()
    for layer, expected in enumerate(reference.layers([matrix] * n_layers, ego)):
        np.testing.assert_allclose(found.vectors(layer), expected, atol=1e-6)
    assert len(found.layers) == n_layers + 1
    np.testing.assert_allclose(found.readout, reference.readout([matrix] * 2, ego), atol=1e-6)
    assert found.origin == {"run": "runs/plain"}


def test_final_vectors_stand_for_every_layer_where_no_other_is_known() -> None:
    readout = torch.rand(5, 2)
    assert Pretrained(readout).vectors(3) is readout


def test_a_digest_knows_every_number_and_nothing_else() -> None:
    readout, layers = torch.rand(4, 3), (torch.rand(4, 3), torch.rand(4, 3))
    digest = Pretrained(readout, layers).digest
    same = Pretrained(readout.T.contiguous().T, tuple(layer.clone() for layer in layers), {"from": "elsewhere"})
    assert same.digest == digest
    assert len({digest, Pretrained(readout).digest, Pretrained(readout, layers[::-1]).digest}) == 3
    layers[1][3, 2] += 1e-6
    assert Pretrained(readout, layers).digest != digest
