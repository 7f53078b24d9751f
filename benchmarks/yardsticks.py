"""What others do, written as a yardstick: not our code's relatives, our code's rivals."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import softplus

from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods.lightgcn import LightGCN
from dpaa.methods.tables import Batch


def readout_loss(final: Tensor, ego: Tensor, batch: Batch, n_users: int, l2: float) -> Tensor:
    """BPR + L2 on whole tables, as it is usually written."""
    user, positive, negative = final[batch.users], final[batch.positive + n_users], final[batch.negative + n_users]
    rows = ego[batch.users], ego[batch.positive + n_users], ego[batch.negative + n_users]
    margin = (user * positive).sum(1) - (user * negative).sum(1)
    squares = sum(row.norm(2).pow(2) for row in rows)
    return softplus(-margin).mean() + l2 * 0.5 * squares / len(batch)


class UsualCode:
    """COO `torch.sparse.mm`, everything through autograd, unfused Adam."""

    def __init__(self, method: LightGCN) -> None:
        graph = method.graph
        self.method, self.n_users = method, graph.n_users
        weight = graph.symmetric_weights().to_user
        user, item = graph.edge_user.long(), graph.edge_item.long() + graph.n_users
        index = torch.stack([torch.cat([user, item]), torch.cat([item, user])])
        shape = (graph.n_nodes, graph.n_nodes)
        self.matrix = torch.sparse_coo_tensor(index, torch.cat([weight, weight]), shape).coalesce()
        self.ego = torch.nn.Parameter(method.tables.ego.rows())
        self.adam = torch.optim.Adam([self.ego], lr=self.method.learning_rate, foreach=False, fused=False)

    def propagate(self, layer: Tensor) -> Tensor:
        """One hop."""
        return torch.sparse.mm(self.matrix, layer)

    def loss(self, batch: Batch) -> Tensor:
        """Forward."""
        layers = [self.ego]
        for _ in range(self.method.layers):
            layers.append(self.propagate(layers[-1]))
        return readout_loss(torch.stack(layers).mean(0), self.ego, batch, self.n_users, self.method.l2)

    def step(self, batch: Batch) -> float:
        """One training step."""
        self.adam.zero_grad()
        loss = self.loss(batch)
        loss.backward()
        self.adam.step()
        return loss.item()


def pyg_edge_index(method: LightGCN) -> UsualCode | None:
    """The same through PyG's `EdgeIndex.matmul`, where torch_geometric is installed."""
    try:
        from torch_geometric import EdgeIndex
    except ImportError:
        return None
    code = UsualCode(method)
    index = code.matrix.indices()
    edges = EdgeIndex(index, sparse_size=tuple(code.matrix.shape), sort_order="row", is_undirected=True)
    edges.fill_cache_()
    values = code.matrix.values()

    class Pyg(UsualCode):
        def propagate(self, layer: Tensor) -> Tensor:
            return edges.matmul(layer, input_value=values)

    code.__class__ = Pyg
    return code


def floor(method: LightGCN, graph: BipartiteGraph, update: Callable[[int, Tensor], None]) -> Callable[[], None]:
    """Only the 2L sparse products and a fused Adam pass."""
    from dpaa.graph.kernels import KERNELS

    multiply, values = KERNELS[method.compute.kernel], graph.slot_values(graph.symmetric_weights())

    def tile(number: int) -> None:
        layer = method.tables.ego.tiles[number]
        for _ in range(2 * method.layers):
            layer = multiply(graph.indptr, graph.neighbours, values, layer)
        update(number, layer)

    return lambda: method.tables.propagation.workers.map(tile, len(method.tables.ego.tiles)) and None
