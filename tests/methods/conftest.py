import numpy as np
import pytest

from dpaa.graph.bipartite import BipartiteGraph
from tests.conftest import random_pairs


@pytest.fixture
def graph() -> BipartiteGraph:
    return BipartiteGraph.from_pairs(random_pairs(np.random.default_rng(2), 30, 20, 0.2), 30, 20)
