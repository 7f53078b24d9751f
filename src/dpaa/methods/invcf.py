"""InvCF: predicted preference should not change when popularity changes (Zhang et al., WWW 2023)."""

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import normalize

from dpaa.methods._shared import distance_correlation
from dpaa.methods.contrast import PopularityVectors, batch_softmax, distinct, mean_of_layers
from dpaa.methods.graph_method import Batch, Rows, method

POPULARITY, SHUFFLE = 1, 2
"""Numbers of the random streams of the vectors of popularity and of the shuffles."""


@method(
    "invcf",
    title="a softmax loss that is invariant to shuffled popularity vectors",
    paper="Zhang et al., Invariant Collaborative Filtering to Popularity Distribution Shift, WWW 2023",
    grid={"temperature": (0.1, 0.15, 0.2), "mixed_weight": (1e-4, 1e-2, 0.1)},
    version=2,
)
class InvCF(PopularityVectors):
    """LightGCN with softmaxes that shuffle popularity.

    loss = SSM(z) + λ₁ SSM(p) + λ₃ (SSM([z, p]) + SSM([z, p'])) + λ₂ dCor(z, p) + L2

    z are the read-out vectors, p those of popularity: layer 0 has one vector for every count that occurs, and is
    propagated as z's is.  p' is p shuffled over the batch.  Items are ranked by z alone, which had to hold with any p.
    """

    temperature: float = Field(default=0.15, gt=0, description="τ of every softmax")
    popularity_weight: float = Field(default=1e-2, ge=0, description="λ₁: of the softmax of popularity alone")
    discrepancy_weight: float = Field(default=0.0, ge=0, description="λ₂: of the distance correlation of z and p")
    mixed_weight: float = Field(default=1e-2, ge=0, description="λ₃: of the softmaxes of z and p; with all 0 it is SSM")

    def parameters(self) -> dict[str, Tensor]:
        """Layer 0 of p, drawn as the table is."""
        return self.popularity_vectors(POPULARITY)

    def _popularity(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Read-out p of the batch's users and positive items."""
        counts = (self.user_popularity, self.item_popularity)
        table = torch.cat([one.index_select(0, level) for one, level in zip(counts, self._levels, strict=True)])
        readout = mean_of_layers(list(self.tables.propagation.differentiable_layers(table)), with_first=True)
        nodes = (batch.users, batch.positive + self.graph.n_users)
        return readout.index_select(0, nodes[0]), readout.index_select(0, nodes[1])

    def _softmax(self, user: Tensor, item: Tensor, index: Tensor | None) -> Tensor:
        return batch_softmax(normalize(user), normalize(item), self.temperature, index)

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """The softmaxes, and L2 of the rows of users and positive items."""
        user, item, _ = batch.split(rows.readout)
        total = self._softmax(user, item, batch.positive) + self.l2_term(batch, rows, parts=2)
        if not (self.popularity_weight or self.mixed_weight or self.discrepancy_weight):
            return total
        by_user, by_item = self._popularity(batch)
        if self.popularity_weight:
            total = total + self.popularity_weight * self._softmax(by_user, by_item, batch.positive)
        if self.mixed_weight:
            draw = self.generator(SHUFFLE, batch.epoch, batch.number)
            order = torch.randperm(len(batch), generator=draw, device=self.graph.device)
            for where, index in ((slice(None), batch.positive), (order, None)):
                mixed = (torch.cat([user, by_user[where]], dim=1), torch.cat([item, by_item[where]], dim=1))
                total = total + self.mixed_weight * self._softmax(*mixed, index)
        if self.discrepancy_weight:
            for nodes, z, p in ((batch.users, user, by_user), (batch.positive, item, by_item)):
                correlation = distance_correlation(distinct(nodes, z)[1], distinct(nodes, p)[1])
                total = total + self.discrepancy_weight * correlation
        return total
