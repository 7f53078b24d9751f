"""Shared by the tests of methods: graphs, methods on them, the worked case of the related methods, slow twins."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from dpaa.data.pairs import Pairs
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.graph.propagation import Selection
from dpaa.methods.base import Histories, attach
from dpaa.methods.graph_method import GraphMethod, WholeTable
from dpaa.methods.lightgcn import LightGCN
from dpaa.methods.tables import Batch, Rows, Tables, cross_entropy
from dpaa.training.trainer import Trainer
from tests.conftest import random_pairs

TOY_EGO = torch.tensor([[1.0], [2.0], [3.0], [4.0], [5.0]])
USERS = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
ITEMS = torch.tensor([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0], [1.0, -1.0]])
SHORT: dict[str, Any] = {
    "embedding_size": 40, "layers": 2, "batch_size": 16, "epochs": 3, "seed": 5, "learning_rate": 0.01,
}  # fmt: skip
"""Hyperparameters of a training of a few epochs with small batches."""


def some_graph(n_users: int = 30, n_items: int = 20, seed: int = 2) -> BipartiteGraph:
    """A random graph with skewed item degrees, a user without items and a cold item."""
    rng = np.random.default_rng(seed)
    pairs = random_pairs(rng, n_users - 1, n_items - 1, 0.15)
    fans = rng.permutation(n_users - 1)[: n_users // 2]
    popular = Pairs.of(np.concatenate([pairs.user, fans]), np.concatenate([pairs.item, np.zeros(len(fans), np.int32)]))
    return BipartiteGraph.from_pairs(popular, n_users, n_items)


def even_graph() -> BipartiteGraph:
    """Every item has three users, every user three items."""
    user = np.repeat(np.arange(8), 3)
    return BipartiteGraph.from_pairs(Pairs.of(user, (user + np.tile([0, 1, 3], 8)) % 8), 8, 8)


def spec_graph() -> BipartiteGraph:
    """R = 1100 / 1010 / 1101."""
    return BipartiteGraph.from_pairs(Pairs.of([0, 0, 1, 1, 2, 2, 2], [0, 1, 0, 2, 0, 1, 3]), 3, 4)


def triples(*wanted: tuple[int, int, int], epoch: int = 1) -> tuple[Batch, Rows]:
    """A batch of the worked case with the read-out rows `USERS` and `ITEMS`; layer 0 is 0."""
    users, positive, negative = torch.tensor(wanted).T
    batch = Batch(users, positive, negative, epoch=epoch)
    nodes = batch.nodes(len(USERS))
    selection = Selection(spec_graph(), nodes, 1, 2.0)
    readout = torch.cat([USERS, ITEMS])[selection.nodes]
    return batch, Rows(selection, nodes, readout, [torch.zeros_like(readout)])


def learned(kind: type[Any], graph: BipartiteGraph, **hyperparameters: object) -> Any:
    """A closed form, computed."""
    method = attach(kind(**hyperparameters), graph)
    method.learn()
    return method


def started(kind: type[GraphMethod], graph: BipartiteGraph, **hyperparameters: object) -> Any:
    """A method with its initial tables."""
    method = attach(kind(**hyperparameters), graph)
    Tables.start(method)
    return method


def trained(kind: type[GraphMethod], graph: BipartiteGraph, **hyperparameters: object) -> Any:
    """A method after a few epochs."""
    method = attach(kind(**(SHORT | hyperparameters)), graph)
    Trainer(method).run()
    return method


def ego_of(method: GraphMethod) -> Tensor:
    """Layer 0, users then items."""
    return method.tables.ego.rows()


def loss_of(method: GraphMethod, batch: Batch) -> float:
    return method.loss(batch, method.tables.forward(batch)).item()


def gradient_of(method: GraphMethod, rows: Rows) -> Tensor:
    """Gradient in layer 0, after `backward`."""
    return torch.cat([method.tables.tile_gradient(rows, tile) for tile in range(len(method.tables.ego.tiles))], dim=1)


def readout_of(method: GraphMethod) -> np.ndarray:
    """All read-out rows, float64."""
    method.tables.update_embeddings()
    return torch.cat([method.user_embedding, method.item_embedding]).double().numpy()


def l2_of(method: GraphMethod, batch: Batch) -> float:
    nodes = batch.nodes(method.graph.n_users)[: 3 * len(batch)]
    return float(method.l2 * 0.5 * ego_of(method)[nodes].double().square().sum() / len(batch))


class WholeLightGCN(WholeTable):
    """LightGCN by automatic differentiation through the whole table."""


class CrossEntropyLightGCN(LightGCN):
    """LightGCN with cross-entropy in place of BPR, times a share."""

    share: float = 1.0

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        user, positive, negative = batch.split(rows.index)
        fit = cross_entropy(rows.dots(user, positive), rows.dots(user, negative))
        return self.share * fit + self.l2_term(batch, rows)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return np.asarray(1.0 / (1.0 + np.exp(-x)))


def matrix_of(graph: BipartiteGraph) -> np.ndarray:
    dense = np.zeros((graph.n_users, graph.n_items))
    dense[graph.edge_user, graph.edge_item] = 1
    return dense


def as_histories(graph: BipartiteGraph) -> Histories:
    return Histories(Pairs.of(graph.edge_user.numpy(), graph.edge_item.numpy()), graph.n_users)
