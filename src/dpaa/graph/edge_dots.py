"""Inner products along the edges of a graph: never an (edges × columns) temporary."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from dpaa.graph.bipartite import BipartiteGraph


def edge_dots(graph: BipartiteGraph, users: Tensor, items: Tensor) -> Tensor:
    """`users[u] · items[i]` for every edge, from (n_users, d) and (n_items, d).  (n_edges,)."""
    starts, columns = graph.indptr[: graph.n_users + 1], graph.edge_item
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta", category=UserWarning)
        pattern = torch.sparse_csr_tensor(
            starts, columns, users.new_zeros(graph.n_edges), (graph.n_users, graph.n_items), check_invariants=False
        )
        dots: Tensor = torch.sparse.sampled_addmm(pattern, users, items.T, beta=0.0).values()
    return dots
