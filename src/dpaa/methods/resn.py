"""ReSN: bound the largest singular value of the predictions, which carries popularity (Lin et al., WSDM 2025)."""

import torch
from pydantic import Field
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from dpaa.methods.contrast import distinct
from dpaa.methods.graph_method import Batch, Rows, WholeTable, method, scores

BLOCK_CELLS = 1 << 20
"""Predictions that are held at once (4 MB)."""


def principal_energy(users: Tensor, items: Tensor) -> Tensor:
    """`‖Ŷ q‖²`, q a constant; predictions are computed by blocks, and again in backward.  A scalar."""
    parts = torch.split(users, max(1, BLOCK_CELLS // max(len(items), 1)))
    with torch.no_grad():
        columns = torch.stack([torch.sigmoid(part @ items.T).sum(dim=0) for part in parts]).sum(dim=0)
        direction: Tensor = columns / columns.norm()

    def energy(part: Tensor, items: Tensor) -> Tensor:
        return torch.mv(torch.sigmoid(part @ items.T), direction).square().sum()

    if len(parts) == 1:  # nothing to save, and torch's checkpoint loads its compiler: seconds
        return energy(users, items)
    return torch.stack([checkpoint(energy, part, items, use_reentrant=False) for part in parts]).sum()


@method(
    "resn",
    title="regularises the largest singular value of the predictions, which carries popularity",
    paper="Lin et al., How Do Recommendation Models Amplify Popularity Bias?, WSDM 2025",
    grid={"spectral_weight": (1e-4, 1e-3, 1e-2, 0.1)},
)
class ReSN(WholeTable):
    """LightGCN with a squared error and a bound on the largest singular value.

    q = Ŷᵀ1 / ‖Ŷᵀ1‖ (a constant),     loss = mean[(1 − σ(s_ui))² + σ(s_uj)²] + L2 + β ‖Ŷ q‖² / users

    Ŷ = σ(scores) are predictions of the batch's users for all items; ‖Ŷ q‖² is never above σ₁², and near it.
    """

    spectral_weight: float = Field(default=0.01, ge=0, description="β: weight of the largest singular value, per user")

    _items: Tensor | None = None
    """Read-out vectors of all items in the current pass."""

    def table_readout(self, table: Tensor, batch: Batch | None) -> Tensor:
        """LightGCN's; the loss needs all items."""
        mean = super().table_readout(table, batch)
        self._items = None if batch is None else mean[self.graph.n_users :]
        return mean

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """The squared error, and the energy of the batch's distinct users along the main direction, per user."""
        items, self._items = self._items, None
        user, positive, negative = batch.split(rows.readout)
        missed = (1.0 - torch.sigmoid(scores(user, positive))).square()
        total = (missed + torch.sigmoid(scores(user, negative)).square()).mean() + self.l2_term(batch, rows)
        if not self.spectral_weight or items is None:
            return total
        _, users = distinct(batch.users, user)
        return total + self.spectral_weight * principal_energy(users, items) / len(users)
