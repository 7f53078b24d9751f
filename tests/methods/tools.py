"""What the tests of methods share: methods made ready, trained a little, and a backbone with cross-entropy."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from dpaa.data.pairs import Pairs
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods.base import Histories
from dpaa.methods.lightgcn import LightGCN
from dpaa.methods.ppac import PPAC
from dpaa.methods.rows import Batch, Rows, cross_entropy
from dpaa.training.trainer import Trainer
from tests.conftest import random_pairs

M = TypeVar("M", bound=LightGCN)

TOY_EGO = torch.tensor([[1.0], [2.0], [3.0], [4.0], [5.0]])


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


def started(method_type: type[M], graph: BipartiteGraph, **settings: object) -> M:
    """With initial tables."""
    method = method_type(graph, method_type.settings_type(**settings))  # type: ignore[arg-type]
    method.start()
    return method


def trained(method_type: type[M], graph: BipartiteGraph, **settings: object) -> M:
    """A few epochs of small batches."""
    defaults: dict[str, object] = {"embedding_size": 40, "layers": 2, "batch_size": 16, "epochs": 3, "seed": 5}
    defaults["learning_rate"] = 0.01
    method = method_type(graph, method_type.settings_type(**(defaults | settings)))  # type: ignore[arg-type]
    Trainer(method).run()
    return method


def loss_of(method: LightGCN, batch: Batch) -> float:
    return method.loss(batch, method.forward(batch)).item()


def readout_of(method: LightGCN) -> np.ndarray:
    """All read-out rows, float64."""
    method.make_embeddings()
    return torch.cat([method.user_embedding, method.item_embedding]).double().numpy()


def l2_of(method: LightGCN, batch: Batch) -> float:
    ego, n = method.ego.rows().double().numpy(), method.graph.n_users
    nodes = np.concatenate([batch.users, batch.positive + n, batch.negative + n])
    return float(method.settings.l2 * 0.5 * np.sum(ego[nodes] ** 2) / len(batch))


class CrossEntropyLightGCN(LightGCN):
    """LightGCN with cross-entropy in place of BPR, times a share."""

    share = 1.0

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        user, positive, negative = batch.split(rows.places)
        fit = cross_entropy(rows.dots(user, positive), rows.dots(user, negative))
        return self.share * fit + self.l2_term(batch, rows)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return np.asarray(1.0 / (1.0 + np.exp(-x)))


def rows_of_personal_popularity(method: PPAC) -> Tensor:
    graph = method.graph
    users, items = torch.meshgrid(torch.arange(graph.n_users), torch.arange(graph.n_items), indexing="ij")
    return method.personal.of_pairs(users.reshape(-1), items.reshape(-1)).view(graph.n_users, graph.n_items)


def matrix_of(graph: BipartiteGraph) -> np.ndarray:
    dense = np.zeros((graph.n_users, graph.n_items))
    dense[graph.edge_user, graph.edge_item] = 1
    return dense


def as_histories(graph: BipartiteGraph) -> Histories:
    return Histories(Pairs.of(graph.edge_user.numpy(), graph.edge_item.numpy()), graph.n_users)
