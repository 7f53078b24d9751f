from __future__ import annotations

import math

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from dpaa.data.pairs import Pairs
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.graph.edges import edge_cosines
from dpaa.graph.tiles import TiledTable
from tests.conftest import random_pairs


def test_cosines_by_hand() -> None:
    graph = BipartiteGraph.from_pairs(Pairs.of([0, 0, 1, 1], [0, 1, 0, 2]), 2, 3)
    vectors = torch.tensor([[1.0, 0], [1, 1], [2, 0], [0, 3], [0, 0]])
    found = edge_cosines(graph, TiledTable.from_dense(vectors, 1))
    np.testing.assert_allclose(found, [1, 0, math.sqrt(0.5), 0], atol=1e-6)


@given(seed=st.integers(0, 9999), columns=st.integers(1, 40), scale=st.sampled_from([1e-15, 1.0, 1e15]))
def test_cosines_lie_in_their_range_and_know_no_length(seed: int, columns: int, scale: float) -> None:
    graph = BipartiteGraph.from_pairs(random_pairs(np.random.default_rng(seed), 6, 5), 6, 5)
    vectors = torch.randn(11, columns, generator=torch.Generator().manual_seed(seed))
    found = edge_cosines(graph, TiledTable.from_dense(vectors, 16))
    assert (found.abs() <= 1).all()
    pairs = vectors[graph.edge_user], vectors[graph.edge_item + graph.n_users]
    torch.testing.assert_close(found, torch.cosine_similarity(*pairs), rtol=1e-4, atol=1e-5)
    scaled = edge_cosines(graph, TiledTable.from_dense(vectors * scale, 16))
    torch.testing.assert_close(scaled, found, rtol=1e-4, atol=1e-5)
