from __future__ import annotations

import numpy as np
import pytest
import torch

from dpaa.methods import _apda_layers as apda_layers
from dpaa.methods._apda_layers import Perturbation
from dpaa.methods.apda import APDA
from dpaa.methods.lightgcn import LightGCN
from tests.methods.tools import some_graph, started, trained


@pytest.mark.parametrize(("similarity", "expected"), [("cosine", 0.0), ("cosine/D", (2 - 2 / 8) / 1.1)])
def test_identical_vectors_under_both_similarities(similarity: str, expected: float) -> None:
    graph = some_graph()
    method = started(APDA, graph, embedding_size=8, layers=1, similarity=similarity)
    method.tables.restore({"ego": torch.ones(graph.n_nodes, 8)})
    weight = method.edge_weights(0).to_user / method.graph.symmetric_weights().to_user
    torch.testing.assert_close(weight, torch.full_like(weight, expected), rtol=1e-5, atol=1e-6)


def test_without_its_parts_it_is_lightgcn(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = some_graph()
    monkeypatch.setattr(apda_layers, "unit", lambda rows: (rows, torch.ones(len(rows), 1)))
    monkeypatch.setattr(apda_layers, "unit_gradient_", lambda by_unit, *_: by_unit)
    monkeypatch.setattr(apda_layers, "distance_weight", lambda distance, _: torch.ones_like(distance))
    monkeypatch.setattr(apda_layers, "distance_slope", lambda distance, _: torch.zeros_like(distance))
    neutral = started(APDA, graph, embedding_size=40, layers=3, residual=0, noise=0, dropout=0)
    plain = started(LightGCN, graph, embedding_size=40, layers=3)
    assert torch.equal(neutral.tables.ego.rows(), plain.tables.ego.rows())
    neutral.finish()
    plain.finish()
    torch.testing.assert_close(neutral.user_embedding, plain.user_embedding)
    torch.testing.assert_close(neutral.item_embedding, plain.item_embedding)
    torch.testing.assert_close(neutral.item_message, plain.item_message)
    neutral, plain = (
        trained(kind, graph, **extra)  # type: ignore[arg-type]
        for kind, extra in ((APDA, {"residual": 0, "noise": 0, "dropout": 0}), (LightGCN, {}))
    )
    torch.testing.assert_close(neutral.tables.ego.rows(), plain.tables.ego.rows(), rtol=1e-3, atol=1e-4)


def test_noise_and_dropout_follow_the_place_of_the_batch_and_end_with_training() -> None:
    graph = some_graph()
    method = started(APDA, graph, batch_size=16)
    first, again = list(method.batches(2)), list(method.batches(2, start=3))
    readout = [method.tables.forward(batch).readout for batch in (first[3], again[0], first[2])]
    assert torch.equal(readout[0], readout[1])
    assert readout[0].shape != readout[2].shape or not torch.equal(readout[0], readout[2])
    method.tables.update_embeddings()
    before = method.user_embedding
    method.tables.forward(first[0])
    method.tables.update_embeddings()
    assert torch.equal(before, method.user_embedding)
    unit = torch.nn.functional.normalize(torch.randn(50, 8))
    draws = Perturbation(np.random.default_rng(9), noise=0.1, dropout=0.4)
    noisy = draws.perturbed(unit)
    torch.testing.assert_close((noisy - unit).norm(dim=1), torch.full((50,), 0.1))
    assert ((noisy - unit) * unit >= 0).all()
    mask = draws.mask(torch.ones(400, 50))
    assert set(mask.unique().tolist()) == {0.0, 1.0}
    assert mask.mean().item() == pytest.approx(0.6, abs=0.02)


def test_a_zero_row_gives_no_nan() -> None:
    graph = some_graph()
    method = started(APDA, graph, embedding_size=8, layers=2)
    ego = method.tables.ego.rows()
    ego[0] = 0
    method.tables.restore({"ego": ego})
    batch = next(method.batches(1))
    rows = method.tables.forward(batch)
    method.loss(batch, rows).backward()
    assert torch.isfinite(method.tables.tile_gradient(rows, 0)).all()
