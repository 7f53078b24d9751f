"""UltraGCN: the limit of infinitely many layers as weights of a loss without layers (Mao et al., CIKM 2021)."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import softplus

from dpaa.graph.cooccurrence import in_common, row_blocks
from dpaa.graph.kernels import top_k
from dpaa.methods._drawn import DrawnNegatives
from dpaa.methods._shared import users_of_items
from dpaa.methods.graph_method import Batch, Rows, method, scores


@method(
    "ultragcn",
    title="no layers: degrees and co-occurrence weight the pairs of the loss instead",
    paper="Mao et al., UltraGCN: Ultra Simplification of Graph Convolutional Networks, CIKM 2021",
    grid={"negative_weight": (1.0, 10.0, 100.0), "neighbour_weight": (0.0, 5e-4, 1e-2, 0.1)},
    wide={"layers": (0, 1, 2)},
)
class UltraGCN(DrawnNegatives):
    """LightGCN without layers, its degrees in the loss.

    β_ui = √((d_u + 1) / (d_i + 1)) / d_u
    loss = mean[(w₁ + w₂ β_ui) softplus(−s_ui) + w_n mean_j (w₃ + w₄ β_uj) softplus(s_uj)]
         + λ mean Σ_{k near i} ω_ik softplus(−s_uk) + L2

    ω weighs the items that share most users with i, i among them.
    """

    layers: int = Field(default=0, ge=0, le=64, description="propagation layers (L); UltraGCN has none")
    positive_base: float = Field(default=1e-6, ge=0, description="w₁: weight of every positive pair")
    positive_degree: float = Field(default=1.0, ge=0, description="w₂: weight of a positive pair by its degrees")
    negative_base: float = Field(default=1e-6, ge=0, description="w₃: weight of every negative pair")
    negative_degree: float = Field(default=1.0, ge=0, description="w₄: weight of a negative pair by its degrees")
    negative_weight: float = Field(default=10.0, ge=0, description="w_n: of all negative items beside the positive")
    n_negatives: int = 256
    neighbour_weight: float = Field(default=5e-4, ge=0, description="λ: of the items near the positive one")
    neighbours: int = Field(default=10, ge=1, le=1000, description="number of items near each item")

    @cached_property
    def near(self) -> tuple[Tensor, Tensor]:
        """Items with the largest ω of each item, and ω, 0 where there are fewer.  Both (n_items, K)."""
        users, n_near = users_of_items(self.graph), min(self.neighbours, self.graph.n_items)
        blocks = row_blocks(torch.arange(self.graph.n_items, device=self.graph.device), users, users)
        total = torch.cat([in_common(users, block, users).sum(dim=1) for block in blocks])  # g, row sums of RᵀR
        best = []
        for block in blocks:
            shared = in_common(users, block, users)
            share = shared / total[block, None].clamp(min=1.0) * torch.sqrt(total[block, None] + 1.0)
            best.append(top_k(torch.where(shared > 0, share * torch.rsqrt(total + 1.0), -torch.inf), n_near))
        weight, item = (torch.cat(parts) for parts in zip(*best, strict=True))
        return item.clamp(min=0), torch.where(item < 0, 0.0, weight)

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """LightGCN's triples, with items drawn for each batch and those near the positive ones."""
        for batch in super().batches(epoch, start):
            neighbours = self.near[0][batch.positive].reshape(-1) if self.neighbour_weight else batch.positive[:0]
            yield replace(batch, more_items=(*batch.more_items, neighbours))

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """Weighted cross-entropy of pairs, of negative items and of near ones; L2 of users and positive items."""
        degree, (items, _) = self.graph.user_degree, batch.more_items
        of_user = (torch.sqrt(degree + 1.0) / degree.clamp(min=1.0))[batch.users]  # β is this times `of_item`
        of_item = torch.rsqrt(self.graph.item_degree + 1.0)
        user, positive, _, drawn, neighbours = batch.split(rows.readout)
        weight = self.positive_base + self.positive_degree * of_user * of_item[batch.positive]
        total = (weight * softplus(-scores(user, positive))).mean()
        weight = self.negative_base + self.negative_degree * of_user[:, None] * of_item[items]
        total = total + self.negative_weight * (weight * softplus(user @ drawn.T)).mean()
        if self.neighbour_weight:
            to_near = torch.einsum("bd,bkd->bk", user, neighbours.view(len(batch), -1, neighbours.shape[1]))
            like = (self.near[1][batch.positive] * softplus(-to_near)).sum(dim=1).mean()
            total = total + self.neighbour_weight * like
        return total + self.l2_term(batch, rows, parts=2)
