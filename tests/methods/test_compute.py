from __future__ import annotations

import pytest

from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods.lightgcn import LightGCN
from dpaa.methods.settings import TrainedSettings


@pytest.mark.parametrize(("interactions", "expected"), [(1000, 2048), (1_024_000, 2048), (5_000_000, 10_000)])
def test_automatic_batch_size_keeps_the_number_of_batches(
    graph: BipartiteGraph, interactions: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = LightGCN(graph, TrainedSettings(batch_size="auto"))
    monkeypatch.setattr(method.sampler, "n_interactions", interactions)
    assert method.compute.batch_size == expected
