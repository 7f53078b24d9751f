"""SL@K: the softmax loss of a pair counts more where the item belongs to the user's top K (Yang et al., KDD 2025)."""

from typing import Any, ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import normalize

from dpaa.graph.cooccurrence import BLOCK_ROWS
from dpaa.graph.kernels import top_k
from dpaa.methods._drawn import DrawnSoftmax, Negatives
from dpaa.methods.graph_method import Batch, fitted, method

QUANTILES = 2
"""Number of the random stream that the quantiles' items are drawn from."""


@method(
    "sl-at-k",
    title="a softmax weighted towards the top of each user's list",
    paper="Yang et al., Breaking the Top-K Barrier: Advancing Top-K Ranking Metrics Optimization, KDD 2025",
    grid={"temperature": (0.05, 0.1, 0.2, 0.5), "weight_temperature": (0.5, 1.0, 1.75, 2.5, 3.0)},
    wide={"quantile_epochs": (5, 20)},
)
class SLAtK(DrawnSoftmax):
    """LightGCN with a softmax loss for NDCG@K.

    loss = mean σ((c_ui − β_u) / τ_w) [log Σ_j exp(c_uj / τ) − c_ui / τ] + L2

    c is the cosine, σ the sigmoid.  β_u is the K-th largest cosine among the user's items and some drawn ones: 0 at
    first, then re-estimated every few epochs.  The weight carries gradient, as in the authors' code.
    """

    list_length: int = Field(default=20, ge=1, description="K: length of the lists that are optimised")
    weight_temperature: float = Field(default=2.5, gt=0, description="τ_w: the larger, the more alike the weights")
    quantile_epochs: int = Field(default=20, ge=1, description="epochs between two estimates of β")

    _changed_by_training: ClassVar[tuple[str, ...]] = ("quantile",)
    quantile: Tensor = fitted()
    """β, (n_users,)."""

    def begin(self) -> None:
        """Start from β = 0."""
        self.quantile = torch.zeros(self.graph.n_users, device=self.graph.device)

    @torch.no_grad()
    def refresh(self, epoch: int) -> dict[str, Any]:
        """Estimate β from the user's items and `n_negatives` drawn for all users."""
        if epoch == 1 or (epoch - 1) % self.quantile_epochs:  # cosines of untrained vectors say nothing
            return {}
        # Whole rows, from all processes: a cosine needs every column.
        users, items = (normalize(self.tables.columns.gathered(side)) for side in self.tables.readout())
        rng, taken, blocks = np.random.default_rng([self.seed, epoch, QUANTILES]), self._items_of_users, []
        drawn = torch.from_numpy(rng.integers(0, len(items), self.n_negatives)).to(items.device)
        for index in torch.split(torch.arange(len(users), device=users.device), BLOCK_ROWS):
            candidates = torch.zeros(len(index), len(items), dtype=torch.bool, device=items.device)
            candidates[:, drawn] = True
            candidates[taken.entries(index)] = True
            cosines = torch.where(candidates, users[index] @ items.T, -torch.inf)
            blocks.append(top_k(cosines, self.list_length)[0][:, -1])  # −inf of fewer than K: a weight of 1
        self.quantile = torch.cat(blocks)
        return {}

    def pair_losses(self, batch: Batch, positive: Tensor, negatives: Negatives) -> Tensor:
        """The softmax loss times `σ((c_ui − β_u) / τ_w)`."""
        weight = torch.sigmoid((positive - self.quantile[batch.users]) / self.weight_temperature)
        return weight * super().pair_losses(batch, positive, negatives)
