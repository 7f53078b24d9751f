"""GF-CF: two low-pass filters on the item graph, in closed form (Shen et al., CIKM 2021)."""

from __future__ import annotations

from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor

from dpaa.graph.kernels import bag
from dpaa.methods._popularity import items_of, items_of_users, users_of_items
from dpaa.methods._spectral import leading_singular, scaled_matrix
from dpaa.methods.base import ClosedForm, Histories, Scorer, fitted, method


@method(
    "gf-cf",
    title="two low-pass filters on the graph of items, in closed form",
    paper="Shen et al., How Powerful is Graph Convolution for Recommendation?, CIKM 2021",
    seeded=False,
    grid={"rank": (64, 128, 256), "ideal_weight": (0.0, 0.1, 0.3, 1.0)},
)
class GFCF(ClosedForm):
    """Scores of two filters; nothing is trained, and the log itself is the first filter.

    scores = r_u R̃ᵀ R̃ + α r_u D_I^−½ V Vᵀ D_I^½,     R̃ = D_U^−½ R D_I^−½

    V are the leading right singular vectors of R̃.  With the first of them alone the second filter ranks by popularity.
    """

    rank: int = Field(default=256, ge=1, le=4096, description="how many singular vectors the second filter lets pass")
    ideal_weight: float = Field(default=0.3, ge=0, description="α: how much the second filter counts")

    saved: ClassVar[dict[str, tuple[str | int, ...]]] = {"basis": ("items", "rank")}
    """V"""

    basis: Tensor = fitted()

    def learn(self) -> None:
        """In float64."""
        self.basis = leading_singular(scaled_matrix(self.graph), self.rank)[2].float().to(self.graph.device)

    def scorer(self, items: Tensor | None = None, histories: Histories | None = None) -> Scorer:
        """Both filters over the user's items."""
        taken, n_items = items_of(self.graph, histories), self.graph.n_items
        of_users, of_items = items_of_users(self.graph), users_of_items(self.graph)
        user_scale, item_scale = (lists.lengths.float().clamp(min=1.0).rsqrt() for lists in (of_users, of_items))
        down = torch.ones(len(of_users.columns), device=self.graph.device)
        item_length = of_items.lengths.float().sqrt()

        def score(index: Tensor) -> Tensor:
            owner, item = taken.entries(index)
            row = torch.zeros(n_items, len(index), device=self.graph.device)
            row[item, owner] = 1.0
            scaled = row * item_scale[:, None]
            messages = bag(of_users.starts, of_users.columns, down, scaled) * (user_scale**2)[:, None]  # (n_users, b)
            scores = bag(of_items.starts, of_items.columns, down, messages) * item_scale[:, None]
            if self.ideal_weight:
                passed = self.basis @ (self.basis.T @ scaled)
                scores = scores + self.ideal_weight * passed * item_length[:, None]
            return (scores if items is None else scores[items]).T

        return score
