"""The log as a matrix, scaled by degrees, and its leading singular vectors: what the closed forms on graphs share."""

from __future__ import annotations

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.linalg import svds
from torch import Tensor

from dpaa.graph.bipartite import BipartiteGraph

DENSE_SIDE = 1024
"""Users or items, whichever are fewer, up to which the whole decomposition is made at once."""


def scaled_matrix(graph: BipartiteGraph, shift: float = 0.0) -> csr_array:
    """`(D_U + a)^−½ R (D_I + a)^−½`, a repeated pair counted once.  (n_users, n_items) float64."""
    users, items = graph.edge_user.cpu().numpy(), graph.edge_item.cpu().numpy()
    degrees = (np.bincount(users, minlength=graph.n_users), np.bincount(items, minlength=graph.n_items))
    values = 1.0 / np.sqrt((degrees[0][users] + shift) * (degrees[1][items] + shift))
    return csr_array((values, (users, items)), shape=(graph.n_users, graph.n_items))


def leading_singular(matrix: csr_array, rank: int) -> tuple[Tensor, Tensor, Tensor]:
    """Left vectors (n, rank), values (rank,) falling, right vectors (m, rank); zeros where there are fewer.  float64.

    The same every time: the start is fixed, and each right vector's largest entry is positive.
    """
    n = min(matrix.shape)
    if n <= DENSE_SIDE or rank >= n - 1:
        left, values, right = np.linalg.svd(matrix.toarray(), full_matrices=False)
    else:
        start = np.random.default_rng(0).random(n)
        left, values, right = svds(matrix, k=rank, v0=start)
    order = np.argsort(-values, kind="stable")[:rank]
    left, values, right = left[:, order], values[order], right[order].T
    there = values > 1e-9 * max(values.max(initial=0.0), 1e-30)  # what is left of nothing is rounding
    sign = np.sign(right[np.abs(right).argmax(axis=0), np.arange(right.shape[1])]) * there
    short = rank - len(values)
    parts = (left * sign, values * there, right * sign)
    padded = (np.pad(part, [*[(0, 0)] * (part.ndim - 1), (0, short)]) for part in parts)
    users, strengths, items = (torch.from_numpy(np.ascontiguousarray(part)) for part in padded)
    return users, strengths, items
