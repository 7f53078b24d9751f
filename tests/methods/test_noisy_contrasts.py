"""SimGCL and XSimGCL: neutral settings, formulas, what noise is drawn from."""

from __future__ import annotations

import pytest
import torch

from dpaa.methods.contrast import info_nce, mean_of_layers
from dpaa.methods.rows import bpr
from dpaa.methods.simgcl import SimGCL
from dpaa.methods.xsimgcl import XSimGCL
from tests.methods.spec import WholeLightGCN
from tests.methods.tools import loss_of, some_graph, started, trained

NEUTRAL = ((SimGCL, {"contrast_weight": 0}), (XSimGCL, {"contrast_weight": 0, "noise": 0}))


@pytest.mark.parametrize(("kind", "neutral"), NEUTRAL)
def test_without_contrast_and_noise_it_is_lightgcn_bit_for_bit(kind: type, neutral: dict[str, object]) -> None:
    graph = some_graph()
    found = trained(kind, graph, include_ego=True, layers=1, **neutral)
    assert torch.equal(found.ego.rows(), trained(WholeLightGCN, graph, layers=1).ego.rows())
    assert torch.equal(found.user_embedding, trained(WholeLightGCN, graph, layers=1).user_embedding)
    deep = trained(kind, graph, include_ego=True, layers=3, **neutral)
    torch.testing.assert_close(deep.ego.rows(), trained(WholeLightGCN, graph, layers=3).ego.rows())


@pytest.mark.parametrize(("kind", "neutral"), NEUTRAL)
def test_layer_0_is_left_out_of_the_read_out(kind: type, neutral: dict[str, object]) -> None:
    method = started(kind, some_graph(), layers=2, embedding_size=4, **neutral)
    method.make_embeddings()
    layers = [layer.rows() for layer in method.propagation.layers(method.ego)]
    expected = (layers[1] + layers[2]) / 2
    torch.testing.assert_close(torch.cat([method.user_embedding, method.item_embedding]), expected)


def test_simgcl_equals_the_formula() -> None:
    graph = some_graph()
    plain = started(SimGCL, graph, embedding_size=8, layers=2, contrast_weight=0)
    method = started(SimGCL, graph, embedding_size=8, layers=2, contrast_weight=0.7, temperature=0.3)
    batch = next(method.batches(1))
    everybody = torch.arange(graph.n_nodes)
    views = [method.view(method.ego.rows(), batch, number, everybody) for number in (0, 1)]
    assert not torch.equal(*views)
    expected = loss_of(plain, batch)
    for nodes in (batch.users.unique(), batch.positive.unique() + graph.n_users):
        expected += 0.7 * info_nce(views[0][nodes], views[1][nodes], 0.3).item()
    assert loss_of(method, batch) == pytest.approx(expected, abs=1e-5)
    still = started(SimGCL, graph, embedding_size=8, layers=2, noise=0)
    assert torch.equal(*(still.view(still.ego.rows(), batch, number, everybody) for number in (0, 1)))


def test_one_walk_back_is_the_gradient_of_all_three_passes() -> None:
    """Against automatic differentiation through the noisy passes themselves."""
    graph = some_graph()
    method = started(SimGCL, graph, embedding_size=8, layers=2, contrast_weight=0.7, l2=0)
    batch = next(method.batches(1))
    rows = method.forward(batch)
    method.loss(batch, rows).backward()
    table = method.ego.rows().requires_grad_()
    readout = method.readout(table, None, None)
    slow = bpr(*batch.split(readout[batch.nodes(graph.n_users)]))
    for nodes in (batch.users.unique(), batch.positive.unique() + graph.n_users):
        slow = slow + 0.7 * info_nce(*(method.view(table, batch, number, nodes) for number in (0, 1)), 0.2)
    slow.backward()
    assert table.grad is not None
    found = torch.cat([method.tile_gradient(rows, number) for number in range(len(method.ego.tiles))], dim=1)
    torch.testing.assert_close(found, table.grad, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("layer", [1, 2, 9])
def test_xsimgcl_equals_the_formula(layer: int) -> None:
    graph = some_graph()
    settings = {"embedding_size": 8, "layers": 2, "noise": 0.1, "contrast_layer": layer}
    plain = started(XSimGCL, graph, **settings, contrast_weight=0)
    method = started(XSimGCL, graph, **settings, contrast_weight=0.7, temperature=0.3)
    batch = next(method.batches(1))
    final = method.readout(method.ego.rows(), None, batch)
    compared = method._compared
    assert compared is not None
    expected = loss_of(plain, batch)  # on the noisy pass, too
    for nodes in (batch.users.unique(), batch.positive.unique() + graph.n_users):
        expected += 0.7 * info_nce(final[nodes], compared[nodes], 0.3).item()
    assert loss_of(method, batch) == pytest.approx(expected, abs=1e-5)


def test_noise_belongs_to_the_batch_and_ends_with_training() -> None:
    method = started(XSimGCL, some_graph(), embedding_size=8, layers=2)
    table, (one, two) = method.ego.rows(), list(method.batches(1, 0))[:1] + list(method.batches(2, 0))[:1]
    noisy = method.readout(table, None, one)
    assert torch.equal(method.readout(table, None, one), noisy)
    assert not torch.equal(method.readout(table, None, two), noisy)
    clean = mean_of_layers(list(method.propagation.differentiable_layers(table)), False)
    assert torch.equal(method.readout(table, None, None), clean)
