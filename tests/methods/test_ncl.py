from __future__ import annotations

import pytest
import torch

from dpaa.methods.contrast import info_nce
from dpaa.methods.ncl import NCL
from tests.methods.tools import WholeLightGCN, loss_of, some_graph, started


@pytest.mark.parametrize("layers", [0, 1, 3])
def test_loss_equals_the_formula(layers: int) -> None:
    graph, n = some_graph(), some_graph().n_users
    plain = started(WholeLightGCN, graph, embedding_size=8, layers=layers)
    weights = {"structure_weight": 0.5, "item_share": 2.0, "kind_weight": 0.3, "clusters": 4, "warm_up_epochs": 1}
    method = started(NCL, graph, embedding_size=8, layers=layers, **weights)
    batch = next(method.batches(1))
    all_layers = [layer.rows() for layer in method.tables.propagation.layers(method.tables.ego)]
    far, near = all_layers[min(2, layers)], all_layers[0]
    users, items = (batch.users, slice(n)), (batch.positive, slice(n, None))
    structure = [info_nce(far[side][own], near[side], 0.1, own).item() for own, side in (users, items)]
    expected = loss_of(plain, batch) + 0.5 * (structure[0] + 2.0 * structure[1])
    method.refresh(1)  # still warming up
    assert loss_of(method, batch) == pytest.approx(expected, rel=1e-5)
    method.refresh(2)
    for name, (own, side) in zip(("users", "items"), (users, items), strict=True):
        centres = torch.stack([near[side][method._cluster[name] == one].mean(dim=0) for one in range(4)])
        expected += 0.3 * info_nce(near[side][own], centres, 0.1, method._cluster[name][own]).item()
    assert loss_of(method, batch) == pytest.approx(expected, rel=1e-5)


def test_clusters_come_back() -> None:
    graph = some_graph()
    method, other = (started(NCL, graph, embedding_size=8, clusters=3, warm_up_epochs=0) for _ in (0, 1))
    assert method.extra_state()["centres.users"].numel() == 0
    method.refresh(1)
    other.tables.restore(method.tables.snapshot())
    batch = next(method.batches(1))
    assert loss_of(other, batch) == loss_of(method, batch)


def test_there_are_at_most_half_as_many_clusters_as_nodes() -> None:
    method = started(NCL, some_graph(), embedding_size=8, warm_up_epochs=0)
    method.refresh(1)
    assert len(method._centres["users"]) <= 15
    assert len(method._centres["items"]) <= 10
