from __future__ import annotations

import numpy as np
import pytest
import torch

from dpaa.graph.reference import symmetric_weights
from dpaa.methods.ngcf import NGCF
from tests.methods.tools import as_histories, matrix_of, some_graph, started


def slow_readout(method: NGCF) -> np.ndarray:
    """The definition with dense float64 matrices, one node after the other."""
    graph, settings = method.graph, method
    n = graph.n_users
    adjacency = np.zeros((graph.n_nodes, graph.n_nodes))
    users, items = graph.edge_user.numpy(), graph.edge_item.numpy()
    weight = symmetric_weights(n, graph.n_items, users, items)
    adjacency[users, items + n] = adjacency[items + n, users] = weight
    networks, biases = (part.detach().double().numpy() for part in (method.networks, method.biases))
    own = method.tables.ego.rows().double().numpy()
    found = [own]
    for layer in range(settings.layers):
        rows = []
        for node in range(graph.n_nodes):
            message = adjacency[node] @ own
            total = (message + own[node]) @ networks[layer, 0] + (message * own[node]) @ networks[layer, 1]
            total = total + biases[layer]
            rows.append(np.where(total > 0, total, 0.2 * total))
        own = np.array(rows)
        unit = own / np.maximum(np.linalg.norm(own, axis=1, keepdims=True), 1e-12)
        own = unit if settings.sent == "normalised" else own
        found.append(unit)
    return np.concatenate(found, axis=1)


@pytest.mark.parametrize("sent", ["as-is", "normalised"])
def test_read_out_equals_the_slow_twin(sent: str) -> None:
    method = started(NGCF, some_graph(), embedding_size=6, layers=2, sent=sent)
    with torch.no_grad():
        method.biases.normal_(0, 0.1, generator=torch.Generator().manual_seed(3))
    method.tables.update_embeddings()
    found = torch.cat([method.user_embedding, method.item_embedding])
    np.testing.assert_allclose(found.numpy(), slow_readout(method), atol=1e-6)


def test_dropout_belongs_to_the_batch_and_ends_with_training() -> None:
    method = started(NGCF, some_graph(), embedding_size=8, layers=2, dropout=0.5)
    table, (one, two) = method.tables.ego.rows(), (next(method.batches(epoch)) for epoch in (1, 2))
    with torch.no_grad():
        dropped = method.table_readout(table, None, one)
        assert torch.equal(method.table_readout(table, None, one), dropped)
        assert not torch.equal(method.table_readout(table, None, two), dropped)
        clean = method.table_readout(table, None, None)
    plain = started(NGCF, some_graph(), embedding_size=8, layers=2, dropout=0)
    assert torch.equal(plain.table_readout(table, None, one), clean)
    assert (dropped[:, 8:16] == 0).float().mean() == pytest.approx(0.5, abs=0.1)


def test_a_newcomer_hears_what_a_user_hears_but_for_layer_0() -> None:
    """A user of the graph whose layer 0 is 0 and whom no item heard is just a newcomer with that history."""
    graph = some_graph()
    method = started(NGCF, graph, embedding_size=6, layers=1)
    with torch.no_grad():
        method.biases.normal_(0, 0.1)
        for tile in method.tables.ego.tiles:
            tile[: graph.n_users] = 0
    method.finish()
    lonely = matrix_of(graph).sum(axis=1) == 0
    found = method.scorer(None, as_histories(graph))(torch.arange(graph.n_users))
    known = method.scorer()(torch.arange(graph.n_users))
    torch.testing.assert_close(found[~lonely], known[~lonely])
