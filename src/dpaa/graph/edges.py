"""Cosines along the edges of a graph, block by block: never an (edges × columns) temporary."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from dpaa.graph.bipartite import BipartiteGraph
from dpaa.graph.columns import Columns
from dpaa.graph.propagation import TiledTable, Workers

EDGE_BLOCK = 16_384


@torch.no_grad()
def edge_cosines(
    graph: BipartiteGraph, table: TiledTable, workers: Workers | None = None, columns: Columns | None = None
) -> Tensor:
    """`cos(e_u, e_i)` for every edge, in [−1, 1]; 0 where a vector is zero.  (n_edges,).

    Where the table is part of one, `columns` says which.
    """
    columns = columns or Columns(table.columns[-1].stop)
    squares = columns.joined(table.unit_sums(torch.square))
    norms = columns.over_all(squares).sqrt()
    items = graph.edge_item + graph.n_users
    parts = norms.new_empty(len(squares), graph.n_edges)
    blocks = -(-graph.n_edges // EDGE_BLOCK)

    def work(block: int) -> None:
        part = slice(block * EDGE_BLOCK, (block + 1) * EDGE_BLOCK)
        user, item = graph.edge_user[part], items[part]
        parts[:, part] = columns.joined(
            table.unit_sums(lambda tile: tile.index_select(0, user).mul_(tile.index_select(0, item)))
        )

    if workers is None:
        for block in range(blocks):
            work(block)
    else:
        workers.map(work, blocks)
    dots = columns.over_all(parts)
    scale = norms.index_select(0, graph.edge_user).mul_(norms.index_select(0, items))
    return torch.where(scale > 0, dots / scale, torch.zeros_like(dots)).clamp_(-1.0, 1.0)


def edge_dots(graph: BipartiteGraph, users: Tensor, items: Tensor, item_order: bool = False) -> Tensor:
    """`users[u] · items[i]` for every edge, from (n_users, d) and (n_items, d).  (n_edges,).

    In the order of the users' rows, or of the items' rows: what is wanted there is cheaper made than moved there.
    """
    n_users, n_edges = graph.n_users, graph.n_edges
    if item_order:
        starts, columns = graph.indptr[n_users:] - n_edges, graph.neighbours[n_edges:]
        rows, others = items, users
    else:
        starts, columns = graph.indptr[: n_users + 1], graph.edge_item
        rows, others = users, items
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta", category=UserWarning)
        pattern = torch.sparse_csr_tensor(
            starts, columns, rows.new_zeros(n_edges), (len(rows), len(others)), check_invariants=False
        )
        dots: Tensor = torch.sparse.sampled_addmm(pattern, rows, others.T, beta=0.0).values()
    return dots
