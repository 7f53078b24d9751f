"""GF-CF: two low-pass filters on the item graph, in closed form (Shen et al., CIKM 2021)."""

from collections.abc import Callable

import numpy as np
import torch
from pydantic import Field
from scipy.sparse import csr_array
from scipy.sparse.linalg import svds
from torch import Tensor

from dpaa.graph.bipartite import BipartiteGraph
from dpaa.graph.kernels import bag
from dpaa.methods._shared import items_of, items_of_users, users_of_items
from dpaa.methods.base import ClosedForm, Histories, Scorer, fitted, method

Filter = Callable[[Tensor], Tensor]
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
    # The iterative solver finds fewer than n − 1 vectors, and of a small matrix it takes longer than all of them.
    if n <= DENSE_SIDE or rank >= n - 1:
        left, values, right = np.linalg.svd(matrix.toarray(), full_matrices=False)
    else:
        left, values, right = svds(matrix, k=rank, v0=np.random.default_rng(0).random(n))
    order = np.argsort(-values, kind="stable")[:rank]
    left, values, right = left[:, order], values[order], right[order].T
    there = values > 1e-9 * max(values.max(initial=0.0), 1e-30)  # what is left of nothing is rounding
    sign = np.sign(right[np.abs(right).argmax(axis=0), np.arange(right.shape[1])]) * there
    short = rank - len(values)
    parts = (left * sign, values * there, right * sign)
    padded = (np.pad(part, [*[(0, 0)] * (part.ndim - 1), (0, short)]) for part in parts)
    users, strengths, items = (torch.from_numpy(np.ascontiguousarray(part)) for part in padded)
    return users, strengths, items


@method(
    "gf-cf",
    title="two low-pass filters on the graph of items, in closed form",
    paper="Shen et al., How Powerful is Graph Convolution for Recommendation?, CIKM 2021",
    seeded=False,
    default_candidate=True,
    grid={"rank": (64, 128, 256), "ideal_weight": (0.0, 0.1, 0.3, 1.0)},
)
class GFCF(ClosedForm):
    """Scores of two filters; nothing is trained, and the log itself is the first filter.

    scores = r_u R̃ᵀ R̃ + α r_u D_I^−½ V Vᵀ D_I^½,     R̃ = D_U^−½ R D_I^−½

    V are the leading right singular vectors of R̃.  With the first of them alone the second filter ranks by popularity.
    """

    rank: int = Field(default=256, ge=1, le=4096, description="number of singular vectors kept by the second filter")
    ideal_weight: float = Field(default=0.3, ge=0, description="α: weight of the second filter")

    basis: Tensor = fitted("items", "rank")
    """V"""

    def learn(self) -> None:
        """Decompose the scaled log, in float64."""
        self.basis = leading_singular(scaled_matrix(self.graph), self.rank)[2].float().to(self.graph.device)

    def scorer(self, items: Tensor | None = None, histories: Histories | None = None) -> Scorer:
        """Both filters over the user's items."""
        taken, n_items = items_of(self.graph, histories), self.graph.n_items
        # Never an items × items matrix: a filter is a product with the log and one back, for a block of users.
        of_users, of_items = items_of_users(self.graph), users_of_items(self.graph)
        user_scale, item_scale = (lists.lengths.float().clamp(min=1.0).rsqrt() for lists in (of_users, of_items))
        down = torch.ones(len(of_users.columns), device=self.graph.device)
        item_length = of_items.lengths.float().sqrt()

        def blur(rows: Tensor) -> Tensor:
            scaled = rows * item_scale[:, None]
            messages = bag(of_users.starts, of_users.columns, down, scaled) * (user_scale**2)[:, None]  # (n_users, b)
            return bag(of_items.starts, of_items.columns, down, messages) * item_scale[:, None]

        def ideal(rows: Tensor) -> Tensor:
            passed = self.basis @ (self.basis.T @ (rows * item_scale[:, None]))
            return self.ideal_weight * passed * item_length[:, None]

        def score(index: Tensor) -> Tensor:
            owner, item = taken.entries(index)
            rows = torch.zeros(n_items, len(index), device=self.graph.device)
            rows[item, owner] = 1.0
            scores = self.filtered(rows, blur, ideal)
            return (scores if items is None else scores[items]).T

        return score

    def filtered(self, rows: Tensor, blur: Filter, ideal: Filter) -> Tensor:
        """Apply the filters to users' items.

        Parameters
        ----------
        rows : (n_items, users) 1 where a user took an item
        blur, ideal : the first filter, and the second times its weight

        Returns
        -------
        (n_items, users) scores
        """
        return blur(rows) + ideal(rows) if self.ideal_weight else blur(rows)
