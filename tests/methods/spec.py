"""The worked case of the related methods: 3 users × 4 items, final vectors given, nothing propagated."""

from __future__ import annotations

import torch

from dpaa.data.pairs import Pairs
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods.lightgcn import LightGCN
from dpaa.methods.rows import Batch, Rows

USERS = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
ITEMS = torch.tensor([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0], [1.0, -1.0]])


def spec_graph() -> BipartiteGraph:
    """R = 1100 / 1010 / 1101."""
    return BipartiteGraph.from_pairs(Pairs.of([0, 0, 1, 1, 2, 2, 2], [0, 1, 0, 2, 0, 1, 3]), 3, 4)


def triples(*wanted: tuple[int, int, int], epoch: int = 1) -> tuple[Batch, Rows]:
    """A batch and its rows, as if they were read out of the tables; layer 0 is 0."""
    users, positive, negative = torch.tensor(wanted).T
    readout = torch.cat([USERS[users], ITEMS[positive], ITEMS[negative]])
    return Batch(users, positive, negative, epoch=epoch), Rows(readout, torch.zeros_like(readout))


class WholeLightGCN(LightGCN):
    """LightGCN by automatic differentiation through the whole table."""

    uses_whole_table = True
