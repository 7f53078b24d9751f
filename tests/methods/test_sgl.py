from __future__ import annotations

import pytest
import torch

from dpaa.methods.contrast import info_nce
from dpaa.methods.sgl import SGL
from tests.methods.spec import WholeLightGCN
from tests.methods.tools import loss_of, some_graph, started, trained


def test_without_contrast_it_is_lightgcn_bit_for_bit() -> None:
    graph = some_graph()
    plain = trained(WholeLightGCN, graph)
    assert torch.equal(trained(SGL, graph, contrast_weight=0).ego.rows(), plain.ego.rows())
    assert not torch.equal(trained(SGL, graph).ego.rows(), plain.ego.rows())


@pytest.mark.parametrize("dropped", [0.0, 0.4])
def test_loss_equals_the_formula(dropped: float) -> None:
    graph = some_graph()
    plain = started(WholeLightGCN, graph, embedding_size=8, layers=2)
    method = started(SGL, graph, embedding_size=8, layers=2, contrast_weight=0.7, dropped_edges=dropped)
    batch = next(method.batches(1))
    views = [torch.stack(list(one.differentiable_layers(method.ego.rows()))).mean(dim=0) for one in method.thinned(1)]
    if not dropped:
        torch.testing.assert_close(views[0], views[1])
    expected = loss_of(plain, batch)
    for own, side in ((batch.users, slice(graph.n_users)), (batch.positive, slice(graph.n_users, None))):
        expected += 0.7 * info_nce(views[0][side][own], views[1][side], 0.2, own).item()
    assert loss_of(method, batch) == pytest.approx(expected, abs=1e-5)


def test_graphs_are_those_of_seed_and_epoch() -> None:
    one, two = (started(SGL, some_graph(), embedding_size=4, layers=1, dropped_edges=0.5) for _ in (0, 1))
    two.thinned(7)
    for mine, other in zip(one.thinned(3), two.thinned(3), strict=True):
        assert torch.equal(mine._values[0], other._values[0])
    assert not torch.equal(one.thinned(3)[0]._values[0], one.thinned(3)[1]._values[0])
    before = one.thinned(3)[0]._values[0]
    assert not torch.equal(one.thinned(4)[0]._values[0], before)
