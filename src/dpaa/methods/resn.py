"""ReSN: hold back the largest singular value of the predictions, where popularity lives (Lin et al., WSDM 2025).

    q = Ŷᵀ1 / ‖Ŷᵀ1‖ (a constant),     loss = fit + L2 + β ‖Ŷ q‖² / users

Ŷ are predictions of the batch's users for all items; ‖Ŷ q‖² is never above σ₁², and near it.  With `scores=linear` Ŷ is
the matrix of the scores themselves, and the term costs no more than a pass over the vectors; with `sigmoid` it is σ of
them, block by block.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor

from dpaa.methods.base import method
from dpaa.methods.contrast import distinct
from dpaa.methods.graph_method import WholeTable
from dpaa.methods.rows import Batch, Rows, scores

BLOCK_CELLS = 1 << 20
"""Predictions that are held at once (4 MB)."""


def principal_energy(users: Tensor, items: Tensor, kind: str) -> Tensor:
    """`‖Ŷ q‖²`, q a constant.  A scalar."""
    if kind == "linear":
        with torch.no_grad():
            direction = items @ users.sum(dim=0)
            direction = direction / direction.norm().clamp(min=1e-12)
        return _squares(users @ (items.T @ direction))
    parts = torch.split(users, max(1, BLOCK_CELLS // max(len(items), 1)))
    with torch.no_grad():
        columns = torch.stack([torch.sigmoid(part @ items.T).sum(dim=0) for part in parts]).sum(dim=0)
        direction = columns / columns.norm()
    total = users.new_zeros(())
    for part in parts:
        total = total + _Energy.apply(part, items, direction)  # type: ignore[no-untyped-call]
    return total


class _Energy(torch.autograd.Function):
    """`‖σ(users itemsᵀ) q‖²`, whose predictions are made again on the way back, not kept."""

    @staticmethod
    def forward(ctx: Any, users: Tensor, items: Tensor, direction: Tensor) -> Tensor:
        ctx.save_for_backward(users, items, direction)
        return _squares(torch.sigmoid(users @ items.T) @ direction)

    @staticmethod
    def backward(ctx: Any, *gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        users, items, direction = ctx.saved_tensors
        predicted = torch.sigmoid(users @ items.T)
        along = (2.0 * gradient[0]) * (predicted @ direction)
        slope = along[:, None] * (predicted * (1.0 - predicted)).mul_(direction)
        return slope @ items, slope.T @ users, None


def _squares(values: Tensor) -> Tensor:
    return torch.sum(values * values)


@method(
    "resn",
    title="the largest singular value of the predictions, where popularity lives, held back",
    paper="Lin et al., How Do Recommendation Models Amplify Popularity Bias?, WSDM 2025",
    grid={"spectral_weight": (1e-4, 1e-3, 1e-2, 0.1)},
)
class ReSN(WholeTable):
    """LightGCN with a bound on the largest singular value."""

    spectral_weight: float = Field(
        default=0.01,
        ge=0,
        description=(
            "β: how much the largest singular value counts, per user of the batch; with `error=bpr` and 0 it "
            "is LightGCN"
        ),
    )
    scores: Literal["sigmoid", "linear"] = Field(default="sigmoid", description="what Ŷ is made of")
    error: Literal["squared", "bpr"] = Field(
        default="squared", description="`squared`: (1 − σ(s_ui))² + σ(s_uj)²; `bpr`: LightGCN's"
    )

    _items: Tensor | None = None
    """Read-out vectors of all items in the pass in hand."""

    def table_readout(self, table: Tensor, nodes: Tensor | None, batch: Batch | None) -> Tensor:
        """LightGCN's; the loss looks at all items."""
        mean = torch.stack(list(self.tables.propagation.differentiable_layers(table))).mean(dim=0)
        self._items = None if batch is None else mean[self.graph.n_users :]
        return mean if nodes is None else mean.index_select(0, nodes)

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """The fit, and the energy of the batch's distinct users along the main direction, per user."""
        items, self._items = self._items, None
        if self.error == "bpr":
            total = super().loss(batch, rows)
        else:
            user, positive, negative = batch.split(rows.readout)
            missed = (1.0 - torch.sigmoid(scores(user, positive))).square()
            total = (missed + torch.sigmoid(scores(user, negative)).square()).mean() + self.l2_term(batch, rows)
        if not self.spectral_weight or items is None:
            return total
        _, users = distinct(batch.users, batch.split(rows.readout)[0])
        return total + self.spectral_weight * principal_energy(users, items, self.scores) / len(users)
