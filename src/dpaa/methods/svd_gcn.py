"""SVD-GCN-S: graph convolution in closed form, a weighted sum of singular vectors (Peng et al., CIKM 2022)."""

import torch
from pydantic import Field
from torch import Tensor

from dpaa.methods._shared import items_of
from dpaa.methods.base import ClosedForm, Histories, Vectors, fitted, method
from dpaa.methods.gf_cf import leading_singular, scaled_matrix


@method(
    "svd-gcn",
    title="graph convolution in closed form: singular vectors of the log, the smooth ones emphasised",
    paper="Peng et al., SVD-GCN: A Simplified Graph Convolution Paradigm, CIKM 2022",
    seeded=False,
    grid={"rank": (30, 60, 120, 240, 480), "emphasis": (0.0, 2.0, 4.0, 6.0)},
    wide={"degree_shift": (0.0, 2.0, 4.0, 8.0)},
)
class SVDGCN(ClosedForm):
    """Singular vectors of the scaled log, the smooth ones emphasised; the variant without training.

    R̃ = (D_U + a)^−½ R (D_I + a)^−½ = U diag(σ) Vᵀ,     score = Σ_k u_k v_k exp(2 b σ_k)

    a holds back nodes with many neighbours, b is the emphasis of the smooth directions.
    """

    rank: int = Field(default=120, ge=1, le=4096, description="K: singular vectors; a large log needs hundreds")
    emphasis: float = Field(default=3.0, ge=0, le=20, description="b: emphasis of the smooth directions; 0: all alike")
    degree_shift: float = Field(default=4.0, ge=0, description="a: added to every degree")

    user_embedding: Tensor = fitted("users", "rank")
    """`u_k exp(b σ_k)`"""
    item_embedding: Tensor = fitted("items", "rank")
    singular_values: Tensor = fitted("rank")

    def learn(self) -> None:
        """Decompose the scaled log, in float64."""
        left, values, right = leading_singular(scaled_matrix(self.graph, self.degree_shift), self.rank)
        left, right = left * torch.exp(self.emphasis * values), right * torch.exp(self.emphasis * values)
        self.user_embedding, self.item_embedding = (side.float().to(self.graph.device) for side in (left, right))
        self.singular_values = values.float().to(self.graph.device)

    def vectors(self, items: Tensor | None = None, histories: Histories | None = None) -> Vectors:
        """Singular vectors; a new user's are the projection of the history."""
        table = self.item_embedding if items is None else self.item_embedding[items]
        users = self.user_embedding if histories is None else self._fold_in(histories)
        return Vectors(lambda index: users[index], table)

    def item_vectors(self) -> Tensor:
        """The items' singular vectors."""
        return self.item_embedding

    def _fold_in(self, histories: Histories) -> Tensor:
        """`u = r̃ V / σ` with r̃ the new user's row of R̃: for a user of the log it is that user's own."""
        taken, shift = items_of(self.graph, histories), self.degree_shift
        owner, item = taken.entries(torch.arange(histories.n_users, device=self.graph.device))
        degree = torch.bincount(self.graph.edge_item, minlength=self.graph.n_items).float() + shift
        part = self.item_embedding[item] * degree[item].clamp(min=1e-12).rsqrt()[:, None]
        total = torch.zeros(histories.n_users, self.rank, device=self.graph.device).index_add_(0, owner, part)
        length = (taken.lengths.float() + shift).clamp(min=1.0).rsqrt()
        values = self.singular_values
        return total * length[:, None] * torch.where(values > 0, 1.0 / values.clamp(min=1e-30), 0.0)
