from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods.base import attach
from dpaa.methods.dap import DAP, anchors
from tests.methods.tools import TOY_EGO, some_graph, started, trained


def test_toy_with_one_cluster_every_entry_drops_by_the_strength(toy_graph: BipartiteGraph) -> None:
    method = started(DAP, toy_graph, embedding_size=1, layers=1, high_strength=0.1, low_strength=0.1, clusters=1)
    method.tables.restore({"ego": TOY_EGO})
    method.finish()
    layer = torch.tensor([4.3284, 2.1213, 1.9142, 0.7071, 0.0]) - 0.1
    expected = (TOY_EGO.squeeze(1) + layer) / 2
    found = torch.cat([method.user_embedding, method.item_embedding]).squeeze(1)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)


@given(seed=st.integers(0, 60), clusters=st.integers(1, 4))
def test_anchors_equal_the_definition(seed: int, clusters: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 25))
    rows, degree, cluster = rng.normal(size=(n, 3)), rng.integers(1, 6, n), rng.integers(0, clusters, n)
    higher, lower = np.zeros_like(rows), np.zeros_like(rows)
    for node in range(n):
        mates = cluster == cluster[node]
        for out, chosen in ((higher, degree > degree[node]), (lower, degree < degree[node])):
            if (mates & chosen).any():
                out[node] = rows[mates & chosen].mean(axis=0)
    found = anchors(torch.from_numpy(rows), torch.from_numpy(degree), torch.from_numpy(cluster))
    np.testing.assert_allclose(found[0], higher, atol=1e-12)
    np.testing.assert_allclose(found[1], lower, atol=1e-12)


def test_one_corrected_layer_equals_the_formula() -> None:
    graph = some_graph()
    method = started(DAP, graph, embedding_size=5, layers=1, high_strength=0.7, low_strength=0.3, clusters=1)
    method.finish()
    ego = method.tables.ego.rows().double()
    layer = method.tables.propagation.hop(0, method.tables.ego).rows().double()
    degree = torch.cat([graph.user_degree, graph.item_degree]).clamp(min=1)
    expected = layer.clone()
    for node in range(graph.n_nodes):
        for strength, mates in ((0.7, degree > degree[node]), (0.3, degree < degree[node])):
            if mates.any():
                mean = layer[mates].mean(0)
                unit = mean / mean.norm()
                cosine = torch.dot(ego[node], unit) / ego[node].norm()
                expected[node] -= strength * cosine * unit
    found = torch.cat([method.user_embedding, method.item_embedding]).double()
    torch.testing.assert_close(found, (ego + expected) / 2, rtol=1e-4, atol=1e-5)


class Wish:
    """A validation that wants certain strengths and counts how often it was asked."""

    def __init__(self, high: float, low: float, clusters: int) -> None:
        self.wish, self.asked = (high, low, clusters), 0

    def recall_of(self, method: object) -> float:
        assert isinstance(method, DAP)
        self.asked += 1
        high, low, clusters = self.wish
        return (
            1
            - abs(method.chosen_high_strength - high)
            - abs(method.chosen_low_strength - low)
            - 0.01 * (method.chosen_clusters != clusters)
        )

    def recalls_of(self, family: object, n: int, device: object = None) -> list[float]:
        raise AssertionError


def test_the_grid_finds_what_validation_wants() -> None:
    method = trained(DAP, some_graph())
    wish = Wish(0.625, 0.5, 10)
    assert method.choose(wish) == {"high_strength": 0.625, "low_strength": 0.5, "clusters": 10}
    assert wish.asked == 10 + 8
    again = attach(method, method.graph)
    again.load_state(method.state())
    assert (again.chosen_high_strength, again.chosen_clusters) == (0.625, 10)
    assert torch.equal(again.scorer()(torch.arange(3)), method.scorer()(torch.arange(3)))
