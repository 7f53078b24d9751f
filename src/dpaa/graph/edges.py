"""Cosines along the edges of a graph, block by block: never an (edges × columns) temporary."""

from __future__ import annotations

import torch
from torch import Tensor

from dpaa.graph.bipartite import BipartiteGraph
from dpaa.graph.tiles import Columns, TiledTable, unit_sums

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
    squares = columns.joined([one for tile in table.tiles for one in unit_sums(tile.square())])
    norms = columns.over_all(squares).sqrt()
    items = graph.edge_item + graph.n_users
    parts = norms.new_empty(len(squares), graph.n_edges)
    for first in range(0, graph.n_edges, EDGE_BLOCK):
        part = slice(first, first + EDGE_BLOCK)
        user, item = graph.edge_user[part], items[part]
        products = [unit_sums(tile.index_select(0, user).mul_(tile.index_select(0, item))) for tile in table.tiles]
        parts[:, part] = columns.joined([one for tile in products for one in tile])
    dots = columns.over_all(parts)
    scale = norms.index_select(0, graph.edge_user).mul_(norms.index_select(0, items))
    return torch.where(scale > 0, dots / scale, torch.zeros_like(dots)).clamp_(-1.0, 1.0)
