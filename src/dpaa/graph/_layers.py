"""Whole layers, where a training step needs a batch's rows alone: the read-out after an epoch, and layers one by one.

`Propagation` inherits these.  What is differentiable here is for methods whose loss meets whole layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from dpaa.graph.bipartite import BipartiteGraph
from dpaa.graph.tiles import TiledTable, Workers


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
