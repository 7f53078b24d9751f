"""InvCF: what is liked should not change when popularity does (Zhang et al., WWW 2023).

    loss = SSM(z) + λ₁ SSM(p) + λ₃ (SSM([z, p]) + SSM([z, p'])) + λ₂ dCor(z, p) + L2

z are the read-out vectors, p vectors of popularity (one for every count that occurs), p' the same shuffled over the
batch.  Ranked is by z alone, which had to do with any p.
"""

from __future__ import annotations

from functools import cached_property

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import normalize

from dpaa.methods._clusters import distance_correlation
from dpaa.methods.base import fitted, method
from dpaa.methods.contrast import distinct, log_sum_exp, others, softmax_loss
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.rows import Batch, Rows, scores

POPULARITY, SHUFFLE = 1, 2
"""Numbers of the random streams that vectors of popularity and the shuffles come from."""


def batch_softmax(user: Tensor, item: Tensor, temperature: float, index: Tensor | None = None) -> Tensor:
    """Each row's item against those of the other rows, by cosine; `index` tells which are the same.  A scalar."""
    user, item = normalize(user), normalize(item)
    _, columns, bias, hide = others(index, item)
    return softmax_loss(scores(user, item) / temperature, log_sum_exp(user, columns, temperature, bias, hide))


@method(
    "invcf",
    title="a softmax that must hold whatever popularity is put beside it",
    paper="Zhang et al., Invariant Collaborative Filtering to Popularity Distribution Shift, WWW 2023",
    grid={
        "temperature": (0.1, 0.15, 0.2),
        "mixed_weight": (1e-4, 1e-2, 0.1),
    },
)
class InvCF(GraphMethod):
    """LightGCN with softmaxes that shuffle popularity."""

    temperature: float = Field(default=0.15, gt=0, description="τ of every softmax")
    popularity_weight: float = Field(default=1e-2, ge=0, description="λ₁: of the softmax of popularity alone")
    discrepancy_weight: float = Field(
        default=0.0, ge=0, description="λ₂: how much both kinds of vectors are kept from saying the same"
    )
    mixed_weight: float = Field(
        default=1e-2, ge=0, description="λ₃: of the softmaxes of both kinds together; with all three 0 it is SSM"
    )

    user_popularity: Tensor = fitted()
    """p of each count that occurs among users."""
    item_popularity: Tensor = fitted()

    @cached_property
    def _levels(self) -> tuple[Tensor, Tensor]:
        """Which of the counts that occur each user and each item has."""
        users, items = (
            torch.unique(degree, return_inverse=True)[1] for degree in (self.graph.user_degree, self.graph.item_degree)
        )
        return users, items

    def parameters(self) -> dict[str, Tensor]:
        """The vectors p, as the table is drawn."""
        draw, size = self.generator(POPULARITY), self.embedding_size
        users, items = (
            torch.empty(int(place.max()) + 1, size).normal_(0, 0.1, generator=draw) for place in self._levels
        )
        return {"user_popularity": users, "item_popularity": items}

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """The softmaxes, and L2 of the rows of users and positive items."""
        user, item, _ = batch.split(rows.readout)
        total = batch_softmax(user, item, self.temperature, batch.positive)
        total = total + (self.l2 / len(batch)) * rows.half_squares(2 * len(batch))
        if not (self.popularity_weight or self.mixed_weight or self.discrepancy_weight):
            return total
        by_user = self.user_popularity[self._levels[0][batch.users]]
        by_item = self.item_popularity[self._levels[1][batch.positive]]
        if self.popularity_weight:
            level = self._levels[1][batch.positive]
            total = total + self.popularity_weight * batch_softmax(by_user, by_item, self.temperature, level)
        if self.mixed_weight:
            draw = self.generator(SHUFFLE, batch.epoch, batch.number)
            order = torch.randperm(len(batch), generator=draw, device=self.graph.device)
            for place, index in ((slice(None), batch.positive), (order, None)):
                mixed = (torch.cat([user, by_user[place]], dim=1), torch.cat([item, by_item[place]], dim=1))
                total = total + self.mixed_weight * batch_softmax(*mixed, self.temperature, index)
        if self.discrepancy_weight:
            for nodes, z, p in ((batch.users, user, by_user), (batch.positive, item, by_item)):
                alike = distance_correlation(distinct(nodes, z)[1], distinct(nodes, p)[1])
                total = total + self.discrepancy_weight * alike
        return total
