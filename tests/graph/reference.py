"""The definition of right: dense, float64, one loop per idea.  Tests hold every fast kernel against these."""

from __future__ import annotations

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
    """Dense bipartite matrix, users first: `A[u, i] = to_user` (what u hears from i), `A[i, u] = to_item`."""
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


def bpr_with_l2(final: Floats, ego: Floats, user: Ints, positive: Ints, negative: Ints, l2: float) -> float:
    """`mean softplus(s_uj − s_ui) + ρ₂ · ½ (‖E_u‖² + ‖E_i‖² + ‖E_j‖²) / B`; all three are node indices."""
    margin = np.sum(final[user] * (final[positive] - final[negative]), axis=1)
    squares = np.sum(ego[user] ** 2) + np.sum(ego[positive] ** 2) + np.sum(ego[negative] ** 2)
    return float(np.mean(np.logaddexp(0.0, -margin)) + l2 * 0.5 * squares / len(user))


def bpr_with_l2_gradient(
    adjacencies: Sequence[Floats], ego: Floats, user: Ints, positive: Ints, negative: Ints, l2: float
) -> Floats:
    """Gradient of `bpr_with_l2` in the ego table, by the chain rule written out.  Returns (n, d)."""
    final = readout(adjacencies, ego)
    by_final, by_ego = np.zeros_like(ego), np.zeros_like(ego)
    for u, i, j in zip(user, positive, negative, strict=True):
        slope = -1.0 / (1.0 + np.exp(final[u] @ (final[i] - final[j]))) / len(user)
        by_final[u] += slope * (final[i] - final[j])
        by_final[i] += slope * final[u]
        by_final[j] -= slope * final[u]
        for node in (u, i, j):
            by_ego[node] += l2 * ego[node] / len(user)
    power = np.eye(len(ego))
    total = power.copy()
    for matrix in adjacencies:
        power = matrix @ power
        total += power
    return np.asarray(total.T @ by_final / (len(adjacencies) + 1) + by_ego)


def adam_first_step(table: Floats, gradient: Floats, learning_rate: float, epsilon: float = 1e-8) -> Floats:
    """Adam's first update from zero moments: `θ − lr · g / (|g| + ε)`."""
    return np.asarray(table - learning_rate * gradient / (np.abs(gradient) + epsilon))


def top_k(scores: Floats, k: int) -> Ints:
    """Columns of the k largest scores per row, best first, ties by lower column; −inf is never taken (−1 instead)."""
    best = np.full((len(scores), k), -1, dtype=np.int64)
    for row, values in enumerate(scores):
        order = sorted((c for c in range(len(values)) if values[c] != -np.inf), key=lambda c: (-values[c], c))[:k]
        best[row, : len(order)] = order
    return best


def nth_missing(present: Sequence[int], n: int) -> int:
    """The n-th (from 0) whole number that is not in `present`."""
    candidate = 0
    while True:
        if candidate not in present:
            if n == 0:
                return candidate
            n -= 1
        candidate += 1
