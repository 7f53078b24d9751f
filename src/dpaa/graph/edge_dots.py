"""Inner products along the edges of a graph: never an (edges × columns) temporary."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from dpaa.graph.bipartite import BipartiteGraph


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
