from __future__ import annotations

import numpy as np

from dpaa.data.pairs import Pairs
from dpaa.graph.bipartite import BipartiteGraph


def test_repeated_pairs_weigh_as_often_as_they_occur() -> None:
    graph = BipartiteGraph.from_pairs(Pairs.of([0, 0, 1], [0, 1, 0], [3, 1, 2]), 2, 2)
    assert graph.user_degree.tolist() == [4, 2]
    assert graph.item_degree.tolist() == [5, 1]
    expected = np.array([3, 1, 2]) / np.sqrt([4 * 5, 4 * 1, 2 * 5])
    np.testing.assert_allclose(graph.symmetric_weights().to_user.numpy(), expected, rtol=1e-6)
