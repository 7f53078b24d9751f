"""Computation of whole layers and read-outs, while a training step only needs the rows of its batch.

`Propagation` inherits `WholeLayers`.  What is differentiable here is for methods whose loss meets whole layers,
products of rows whose columns lie in several processes, or weights that have a gradient of their own; cosines along
edges are computed block by block.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from dpaa.graph.bipartite import BipartiteGraph, EdgeWeights
from dpaa.graph.kernels import add_rows_, bag, sparse_rows
from dpaa.graph.tiles import UNIT, Columns, TiledTable, Workers, unit_sums


class WholeLayers:
    """Layers and read-outs of all nodes; `Propagation` brings the weights and the products."""

    graph: BipartiteGraph
    n_layers: int
    residual: float
    share: float
    workers: Workers
    _values: list[Tensor]
    _transposed: list[Tensor]

    def _hop(self, values: Tensor, tile: Tensor) -> Tensor:
        raise NotImplementedError

    def _layers_of_tile(self, ego: Tensor, values_of_layers: list[Tensor]) -> Iterator[Tensor]:
        raise NotImplementedError

    @torch.no_grad()
    def hop(self, layer: int, table: TiledTable) -> TiledTable:
        """Apply one layer to any table, `A_l x`, without the residual.

        Parameters
        ----------
        layer : from 0
        table : (n_nodes, d)

        Returns
        -------
        (n_nodes, d)
        """
        values = self._values[layer]
        return TiledTable(tuple(self.workers.map(lambda tile: self._hop(values, table.tiles[tile]), len(table.tiles))))

    def layers(self, ego: TiledTable) -> Iterator[TiledTable]:
        """Compute layers 0 … L one after the other, for callers that need more than the read-out.

        Parameters
        ----------
        ego : (n_nodes, d) layer 0

        Returns
        -------
        L + 1 tables
        """
        per_tile = [self._layers_of_tile(tile, self._values) for tile in ego.tiles]
        for _ in range(self.n_layers + 1):
            yield TiledTable(tuple(next(tile) for tile in per_tile))

    def differentiable_layers(
        self, table: Tensor, change: Callable[[Tensor], Tensor] = lambda layer: layer
    ) -> Iterator[Tensor]:
        """Compute layers 0 … L of a dense table, for automatic differentiation.

        Parameters
        ----------
        table : (n_nodes, d) layer 0
        change : applied to each layer after 0; default none

        Returns
        -------
        L + 1 tensors, (n_nodes, d) each
        """
        layer = table
        yield layer
        for number in range(self.n_layers):
            layer = self.differentiable_hop(number, layer)
            layer = change(layer + self.residual * table if self.residual else layer)
            yield layer

    def differentiable_hop(self, layer: int, table: Tensor) -> Tensor:
        """Apply one layer to a dense table, `A_l x`, without the residual.

        Parameters
        ----------
        layer : from 0
        table : (n_nodes, d)

        Returns
        -------
        (n_nodes, d)
        """
        hop = partial(self._hop, self._values[layer]), partial(self._hop, self._transposed[layer])
        return _DifferentiableHop.apply(table, *hop)  # type: ignore[no-any-return, no-untyped-call]

    @torch.no_grad()
    def dense_readout(self, ego: TiledTable) -> tuple[Tensor, Tensor]:
        """Compute the read-out, the mean of the layers; no other table is held meanwhile.

        Parameters
        ----------
        ego : (n_nodes, d) layer 0

        Returns
        -------
        of users (n_users, d) and of items (n_items, d)
        """
        columns, n_users = ego.columns, self.graph.n_users
        users = ego.tiles[0].new_empty(n_users, columns[-1].stop)
        items = ego.tiles[0].new_empty(self.graph.n_items, columns[-1].stop)

        def work(number: int) -> None:
            layers = self._layers_of_tile(ego.tiles[number], self._values)
            total = next(layers).clone()
            for layer in layers:
                total.add_(layer)
            total.mul_(self.share)
            users[:, columns[number]], items[:, columns[number]] = total[:n_users], total[n_users:]

        self.workers.map(work, len(ego.tiles))
        return users, items


class _DifferentiableHop(torch.autograd.Function):
    """`A x`, whose gradient is `Aᵀ g` with the same kernel."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, hop: Callable[[Tensor], Tensor], back: Callable[[Tensor], Tensor]) -> Tensor:
        ctx.back = back
        return hop(table)

    @staticmethod
    def backward(ctx: Any, by_layer: Tensor) -> tuple[Tensor, None, None]:
        return ctx.back(by_layer.contiguous()), None, None


EDGE_BLOCK = 16_384


@torch.no_grad()
def edge_cosines(graph: BipartiteGraph, table: TiledTable, columns: Columns | None = None) -> Tensor:
    """`cos(e_u, e_i)` for every edge, in [−1, 1]; 0 where a vector is zero.

    Parameters
    ----------
    graph : the edges
    table : (n_nodes, d) vectors of users, then items
    columns : which columns these are, where other processes hold the rest

    Returns
    -------
    (n_edges,) cosines
    """
    columns = columns or Columns(table.columns[-1].stop)
    squares = columns.joined([sums for tile in table.tiles for sums in unit_sums(tile.square())])
    norms = columns.over_all(squares).sqrt()
    items = graph.edge_item + graph.n_users
    parts = norms.new_empty(len(squares), graph.n_edges)
    for first in range(0, graph.n_edges, EDGE_BLOCK):
        part = slice(first, first + EDGE_BLOCK)
        user, item = graph.edge_user[part], items[part]
        products = [unit_sums(tile.index_select(0, user).mul_(tile.index_select(0, item))) for tile in table.tiles]
        parts[:, part] = columns.joined([product for tile in products for product in tile])
    dots = columns.over_all(parts)
    scale = norms.index_select(0, graph.edge_user).mul_(norms.index_select(0, items))
    return torch.where(scale > 0, dots / scale, torch.zeros_like(dots)).clamp_(-1.0, 1.0)


class Dots(torch.autograd.Function):
    """`u·i` of pairs; the gradient goes straight to the distinct rows."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, left: Tensor, right: Tensor, columns: Columns) -> Tensor:
        ctx.one, ctx.other = rows.index_select(0, left), rows.index_select(0, right)
        ctx.n_rows = len(rows)
        ctx.save_for_backward(left, right)
        return columns.sum(unit_sums(ctx.one * ctx.other))

    @staticmethod
    def backward(ctx: Any, by_dot: Tensor) -> tuple[Tensor, None, None, None]:
        left, right = ctx.saved_tensors
        by_right, by_left, ctx.one, ctx.other = ctx.one, ctx.other, None, None  # there is one backward pass
        by_rows = by_right.new_zeros(ctx.n_rows, by_right.shape[1])
        add_rows_(by_rows, left, by_left.mul_(by_dot[:, None]))
        return add_rows_(by_rows, right, by_right.mul_(by_dot[:, None])), None, None, None


class Projections(torch.autograd.Function):
    """`u·v` of rows and one vector, whose gradient is gathered from all columns."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, index: Tensor, vector: Tensor, columns: Columns) -> Tensor:
        own = columns.cut(vector[None])
        ctx.columns, ctx.n_rows, ctx.taken = columns, len(rows), rows.index_select(0, index)
        ctx.save_for_backward(index, own)
        return columns.sum(unit_sums(ctx.taken * own))

    @staticmethod
    def backward(ctx: Any, by_product: Tensor) -> tuple[Tensor, None, Tensor, None]:
        (index, own), taken, ctx.taken = ctx.saved_tensors, ctx.taken, None
        by_rows = taken.new_zeros(ctx.n_rows, taken.shape[1])
        add_rows_(by_rows, index, by_product[:, None] * own)
        # Unit by unit: how torch sums a column depends on the number of columns.
        units = (unit.contiguous().sum(dim=0) for unit in torch.split(taken.mul_(by_product[:, None]), UNIT, dim=1))
        return by_rows, None, ctx.columns.gathered(torch.cat(list(units))[None])[0], None


def slot_dots(graph: BipartiteGraph, receiver: Tensor, sender: Tensor) -> Tensor:
    """`receiver_a·sender_b` of every slot, never an (edges × columns) temporary.  (2 · n_edges,)."""
    n, edges = graph.n_users, receiver.new_zeros(graph.n_edges)
    matrix = sparse_rows(graph.indptr[: n + 1], graph.edge_item, edges, graph.n_items)
    to_user = torch.sparse.sampled_addmm(matrix, receiver[:n], sender[n:].T, beta=0.0).values()
    to_item = torch.sparse.sampled_addmm(matrix, sender[:n], receiver[n:].T, beta=0.0).values()
    return torch.cat([to_user, to_item.index_select(0, graph.by_item)])


def _transposed(graph: BipartiteGraph, values: Tensor) -> Tensor:
    """Slot values of the transposed matrix.  (2 · n_edges,)."""
    to_item = torch.empty_like(values[graph.n_edges :]).index_copy_(0, graph.by_item.long(), values[graph.n_edges :])
    return graph.slot_values(EdgeWeights(to_item, values[: graph.n_edges]))


class SenderDots(torch.autograd.Function):
    """`slot_dots` of rows with themselves, with gradient to the sender alone; torch's own takes five times as long."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, graph: BipartiteGraph) -> Tensor:
        ctx.graph = graph
        ctx.save_for_backward(rows)
        return slot_dots(graph, rows, rows)

    @staticmethod
    def backward(ctx: Any, by_dots: Tensor) -> tuple[Tensor, None]:
        values = _transposed(ctx.graph, by_dots)
        return bag(ctx.graph.indptr, ctx.graph.neighbours, values, ctx.saved_tensors[0]), None


class Messages(torch.autograd.Function):
    """Weighted sums over neighbours, with gradient to weights and rows."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, rows: Tensor, graph: BipartiteGraph) -> Tensor:
        ctx.graph = graph
        ctx.save_for_backward(weights, rows)
        return bag(graph.indptr, graph.neighbours, weights, rows)

    @staticmethod
    def backward(ctx: Any, by_sums: Tensor) -> tuple[Tensor, Tensor, None]:
        (weights, rows), graph = ctx.saved_tensors, ctx.graph
        by_rows = bag(graph.indptr, graph.neighbours, _transposed(graph, weights), by_sums)
        return slot_dots(graph, by_sums, rows), by_rows, None
