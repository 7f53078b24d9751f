"""Cosines along the edges of a graph, block by block: never an (edges × columns) temporary."""

from __future__ import annotations

import torch
from torch import Tensor

from dpaa.graph.bipartite import BipartiteGraph
from dpaa.graph.propagation import TiledTable, Workers

EDGE_BLOCK = 16_384


@torch.no_grad()
def edge_cosines(graph: BipartiteGraph, table: TiledTable, workers: Workers | None = None) -> Tensor:
    """`cos(e_u, e_i)` for every edge, in [−1, 1]; 0 where a vector is zero.  (n_edges,)."""
    norms = table.sum_over_columns(lambda tile: tile.square().sum(dim=1)).sqrt()
    items = graph.edge_item + graph.n_users
    dots = torch.empty(graph.n_edges, dtype=norms.dtype, device=norms.device)
    blocks = -(-graph.n_edges // EDGE_BLOCK)

    def work(block: int) -> None:
        part = slice(block * EDGE_BLOCK, (block + 1) * EDGE_BLOCK)
        user, item = graph.edge_user[part], items[part]
        dots[part] = table.sum_over_columns(
            lambda tile: torch.linalg.vecdot(tile.index_select(0, user), tile.index_select(0, item))
        )

    if workers is None:
        for block in range(blocks):
            work(block)
    else:
        workers.map(work, blocks)
    scale = norms.index_select(0, graph.edge_user).mul_(norms.index_select(0, items))
    return torch.where(scale > 0, dots / scale, torch.zeros_like(dots)).clamp_(-1.0, 1.0)
