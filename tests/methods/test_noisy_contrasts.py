"""SimGCL and XSimGCL: neutral settings, formulas, what noise is drawn from."""

from __future__ import annotations

import pytest
import torch

from dpaa.methods.contrast import info_nce, mean_of_layers
from dpaa.methods.rows import bpr
from dpaa.methods.simgcl import SimGCL
from dpaa.methods.xsimgcl import XSimGCL
from tests.methods.tools import some_graph, started

NEUTRAL = ((SimGCL, {"contrast_weight": 0}), (XSimGCL, {"contrast_weight": 0, "noise": 0}))


@pytest.mark.parametrize(("kind", "neutral"), NEUTRAL)
def test_layer_0_is_left_out_of_the_read_out(kind: type, neutral: dict[str, object]) -> None:
    method = started(kind, some_graph(), layers=2, embedding_size=4, **neutral)
    method.tables.update_embeddings()
    layers = [layer.rows() for layer in method.tables.propagation.layers(method.tables.ego)]
    expected = (layers[1] + layers[2]) / 2
    torch.testing.assert_close(torch.cat([method.user_embedding, method.item_embedding]), expected)


def test_one_walk_back_is_the_gradient_of_all_three_passes() -> None:
    """Against automatic differentiation through the noisy passes themselves."""
    graph = some_graph()
    method = started(SimGCL, graph, embedding_size=8, layers=2, contrast_weight=0.7, l2=0)
    batch = next(method.batches(1))
    rows = method.tables.forward(batch)
    method.loss(batch, rows).backward()
    table = method.tables.ego.rows().requires_grad_()
    readout = method.table_readout(table, None, None)
    slow = bpr(*batch.split(readout[batch.nodes(graph.n_users)]))
    for nodes in (batch.users.unique(), batch.positive.unique() + graph.n_users):
        slow = slow + 0.7 * info_nce(*(method.view(table, batch, number, nodes) for number in (0, 1)), 0.2)
    slow.backward()
    assert table.grad is not None
    found = torch.cat(
        [method.tables.tile_gradient(rows, number) for number in range(len(method.tables.ego.tiles))], dim=1
    )
    torch.testing.assert_close(found, table.grad, atol=1e-6, rtol=1e-4)


def test_noise_belongs_to_the_batch_and_ends_with_training() -> None:
    method = started(XSimGCL, some_graph(), embedding_size=8, layers=2)
    table, (one, two) = method.tables.ego.rows(), list(method.batches(1, 0))[:1] + list(method.batches(2, 0))[:1]
    noisy = method.table_readout(table, None, one)
    assert torch.equal(method.table_readout(table, None, one), noisy)
    assert not torch.equal(method.table_readout(table, None, two), noisy)
    clean = mean_of_layers(list(method.tables.propagation.differentiable_layers(table)), False)
    assert torch.equal(method.table_readout(table, None, None), clean)
