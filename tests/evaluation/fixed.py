"""A method whose scores are given."""

from typing import Any

import numpy as np
import torch

from dpaa.data.dataset import Dataset
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods.base import Method


class Fixed(Method):
    """Ranks by a given matrix of scores."""

    def __init__(self, dataset: Dataset, scores: np.ndarray) -> None:
        super().__init__()
        self.graph = BipartiteGraph.from_pairs(dataset.train, dataset.n_users, dataset.n_items)
        self.matrix = torch.from_numpy(scores)

    def scorer(self, items: Any = None, histories: Any = None) -> Any:
        matrix = self.matrix if items is None else self.matrix[:, items]
        return lambda users: matrix[users].clone()
