"""The definition of right: dense, float64, one loop per idea.  Tests hold every fast kernel against these."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[Any]


def propagate(indptr: Ints, neighbours: Ints, weights: Floats, embeddings: Floats) -> Floats:
    """One layer: row v is `Σ_k weights[k] · embeddings[neighbours[k]]` over v's slots k.  Returns (n, d)."""
    out = np.zeros((len(indptr) - 1, embeddings.shape[1]))
    for node in range(len(out)):
        for slot in range(indptr[node], indptr[node + 1]):
            out[node] += weights[slot] * embeddings[neighbours[slot]]
    return out


def adjacency(n_users: int, n_items: int, user: Ints, item: Ints, to_user: Floats, to_item: Floats) -> Floats:
    """Dense bipartite matrix, users first: `A[u, i] = to_user` (what u receives from i), `A[i, u] = to_item`."""
    dense = np.zeros((n_users + n_items, n_users + n_items))
    dense[user, n_users + item] = to_user
    dense[n_users + item, user] = to_item
    return dense


def symmetric_weights(n_users: int, n_items: int, user: Ints, item: Ints) -> Floats:
    """LightGCN's `1 / √(d_u d_i)` per edge."""
    user_degree = np.bincount(user, minlength=n_users)
    item_degree = np.bincount(item, minlength=n_items)
    return np.asarray(1.0 / np.sqrt(user_degree[user] * item_degree[item]), dtype=np.float64)


def layers(adjacencies: Sequence[Floats], ego: Floats, residual: float = 0.0) -> list[Floats]:
    """`h^0 = E`, `h^(l+1) = A_l h^l + δ E`."""
    found = [ego]
    for matrix in adjacencies:
        found.append(matrix @ found[-1] + residual * ego)
    return found


def readout(adjacencies: Sequence[Floats], ego: Floats, residual: float = 0.0) -> Floats:
    """Mean of the layers 0..L.  Returns (n_users + n_items, d)."""
    return np.asarray(np.mean(layers(adjacencies, ego, residual), axis=0))


def top_k(scores: Floats, k: int) -> Ints:
    """Columns of the k largest scores per row, best first, ties by lower column; −inf is never taken (−1 instead)."""
    best = np.full((len(scores), k), -1, dtype=np.int64)
    for row, values in enumerate(scores):
        order = sorted((c for c in range(len(values)) if values[c] != -np.inf), key=lambda c: (-values[c], c))[:k]
        best[row, : len(order)] = order
    return best
