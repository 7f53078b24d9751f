from __future__ import annotations

import pytest
import torch

from dpaa.methods.contrast import same_sign_noise, thinned_weights
from tests.methods.tools import some_graph


def test_noise_has_its_length_and_leaves_every_sign() -> None:
    layer = torch.randn(50, 6, generator=torch.Generator().manual_seed(0)).requires_grad_()
    noisy = same_sign_noise(0.3, torch.Generator().manual_seed(1))(layer)
    torch.testing.assert_close((noisy - layer).norm(dim=1), torch.full((50,), 0.3))
    assert torch.equal(noisy.sign(), layer.sign())
    noisy.sum().backward()
    assert torch.equal(layer.grad, torch.ones_like(layer))  # type: ignore[arg-type]  # noise is a constant
    assert torch.equal(same_sign_noise(0.0, torch.Generator())(layer), layer)


@pytest.mark.parametrize("dropped", [0.0, 0.3, 0.9])
def test_thinned_graphs_count_degrees_on_what_is_left(dropped: float) -> None:
    graph = some_graph()
    found = thinned_weights(graph, dropped, torch.Generator().manual_seed(3)).to_user
    kept = found > 0
    assert kept.sum() == int(graph.n_edges * (1 - dropped))
    users = torch.bincount(graph.edge_user[kept], minlength=graph.n_users).float()
    items = torch.bincount(graph.edge_item[kept], minlength=graph.n_items).float()
    expected = (users[graph.edge_user[kept].long()] * items[graph.edge_item[kept].long()]).rsqrt()
    torch.testing.assert_close(found[kept], expected)
    if not dropped:
        torch.testing.assert_close(found, graph.symmetric_weights().to_user)
