"""The direction of popularity: how much of the vectors lies on the top singular vector of the training matrix.

Summing over neighbours again and again, without dividing by degrees, is power iteration: every vector is drawn onto the
first singular vectors of the matrix R of training pairs, of which the items' (the first eigenvector of RᵀR) is close to
their counts.  With unit vectors `u` (users) and `v` (items) and the vectors H_U, H_I of a layer:

    share of the items' energy = ‖vᵀ H_I‖² / ‖H_I‖²,   of the users' = ‖uᵀ H_U‖² / ‖H_U‖²

Chance is 1 / n.  A table whose items all lie on v ranks alike for everybody: by popularity.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from dpaa.graph.bipartite import BipartiteGraph

Floats = NDArray[np.float64]
STEPS, TOLERANCE = 2000, 1e-12
"""Of the power iteration."""


@dataclass(frozen=True)
class EnergyShare:
    """How much of one layer's energy lies on the direction of popularity."""

    layer: int | None
    """None is the read-out."""
    users: float
    items: float


@dataclass(frozen=True)
class Direction:
    """The first singular vectors of the training matrix, and what lies on them."""

    cosine: float
    """Between the items' singular vector and their training counts: how much it is popularity."""
    chance_users: float
    chance_items: float
    """What a random table has: 1 / n."""
    shares: tuple[EnergyShare, ...]
    """Layers 0 … L, then the read-out."""

    @property
    def readout(self) -> EnergyShare:
        """Of the read-out."""
        return self.shares[-1]

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        return asdict(self)


def first_singular_vectors(graph: BipartiteGraph) -> tuple[Floats, Floats]:
    """Unit vectors of users and items, both without negative numbers, by power iteration on RᵀR in float64."""
    entries = (graph.edge_count.double().cpu().numpy(), (graph.edge_user.cpu().numpy(), graph.edge_item.cpu().numpy()))
    matrix = sparse.csr_matrix(entries, shape=(graph.n_users, graph.n_items))
    items = np.asarray(graph.item_degree.double().cpu().numpy())
    items = items / max(float(np.linalg.norm(items)), 1e-300)
    for _ in range(STEPS):
        found = matrix.T @ (matrix @ items)
        found /= max(float(np.linalg.norm(found)), 1e-300)
        moved = float(np.linalg.norm(found - items))
        items = found
        if moved < TOLERANCE:
            break
    users = matrix @ items
    return users / max(float(np.linalg.norm(users)), 1e-300), items


def popularity_direction(graph: BipartiteGraph, layers: Iterable[Tensor], readout: Tensor) -> Direction:
    """Energy of layers 0 … L and of the read-out, (n_nodes, d) each, on the first singular vectors."""
    users, items = first_singular_vectors(graph)
    counts = graph.item_degree.double().cpu().numpy()
    tables = [*enumerate(layers), (None, readout)]
    n = graph.n_users
    shares = tuple(
        EnergyShare(layer, *(energy_share(vector, part) for vector, part in ((users, table[:n]), (items, table[n:]))))
        for layer, table in tables
    )
    norm = float(np.linalg.norm(counts))
    cosine = float(items @ counts / norm) if norm else 0.0
    return Direction(cosine, 1.0 / max(graph.n_users, 1), 1.0 / max(graph.n_items, 1), shares)


def energy_share(direction: Floats, table: Tensor) -> float:
    """`‖dᵀ H‖² / ‖H‖²`; 0 where there is none."""
    rows = table.double().cpu().numpy()
    total = float((rows * rows).sum())
    return float(((direction @ rows) ** 2).sum() / total) if total > 0 else 0.0
