"""DICE: interest and conformity learned separately, by the popularity of negative items (Zheng et al., WWW 2021)."""

from collections.abc import Iterator
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import softplus

from dpaa.methods._shared import distance_correlation
from dpaa.methods.contrast import distinct
from dpaa.methods.graph_method import Batch, GraphMethod, Rows, method
from dpaa.methods.samplers import MarginSampler, TripleSampler
from dpaa.methods.tables import margins

COMPARED = 256
"""Triples of a batch whose users and items the distance correlation is taken over: it costs their number squared."""


@method(
    "dice",
    title="interest and conformity learned separately, in the two halves of every vector",
    paper="Zheng et al., Disentangling User Interest and Conformity, WWW 2021",
    version=2,
    grid={"interest_weight": (0.01, 0.1, 0.5), "conformity_weight": (0.01, 0.1, 0.5)},
    wide={"discrepancy_weight": (0.0, 0.01, 0.1)},
)
class DICE(GraphMethod):
    """LightGCN in two halves: the first of every vector is interest, the second conformity.

    A negative item that is more popular than the one taken shows interest (and the conformity that did not decide), one
    that is less popular shows conformity:

    loss = BPR(both) + a mean[more popular: BPR(interest)]
         + b mean[more popular: BPR(conformity, reversed); less popular: BPR(conformity)]
         + c dCor(interest, conformity) + L2

    a, b and the margin of popularity shrink from epoch to epoch.
    """

    interest_weight: float = Field(default=0.1, ge=0, description="a: of the pairs that show interest")
    conformity_weight: float = Field(default=0.1, ge=0, description="b: of what they show of conformity")
    discrepancy_weight: float = Field(default=0.01, ge=0, description="c: of the distance correlation of the halves")
    margin: Literal["auto"] | Annotated[float, Field(ge=0)] = Field(
        default="auto",
        description="interactions by which a more popular negative item exceeds the positive one in the first epoch; "
        "`auto` is 40, or a tenth of the largest count where that is less",
    )
    pool: int = Field(default=40, ge=1, description="untaken items that a side needs to be drawn from")
    decay: float = Field(default=0.9, gt=0, le=1, description="factor of a, b and the margin after every epoch")

    @property
    def sampler_type(self) -> type[TripleSampler]:
        """Negative items by a fair coin more popular by the margin, or half as popular at most."""
        return MarginSampler

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """Draw triples by the epoch's margin."""
        sampler = self.tables.sampler
        assert isinstance(sampler, MarginSampler)
        first = min(40.0, 0.1 * self.graph.item_degree.max().item()) if self.margin == "auto" else self.margin
        sampler.margin, sampler.pool = first * self.decay ** (epoch - 1), self.pool
        yield from super().batches(epoch, start)

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """LightGCN's on whole vectors, and the halves' own terms: means over all pairs, as in the authors' code."""
        interest, conformity = torch.tensor_split(rows.readout, 2, dim=1)
        decay, count = self.decay ** max(batch.epoch - 1, 0), self.graph.item_degree
        popular = (count[batch.negative] > count[batch.positive]).to(interest.dtype)
        likes = softplus(-margins(*batch.split(interest)))
        follows = margins(*batch.split(conformity))
        follows = popular * softplus(follows) + (1.0 - popular) * softplus(-follows)
        total = super().loss(batch, rows) + decay * self.interest_weight * (popular * likes).mean()
        total = total + decay * self.conformity_weight * follows.mean()
        if self.discrepancy_weight:
            user, *items = (part[:COMPARED] for part in batch.split(rows.readout))
            both = torch.cat([batch.positive[:COMPARED], batch.negative[:COMPARED]])
            for nodes, vectors in ((batch.users[:COMPARED], user), (both, torch.cat(items))):
                halves = torch.tensor_split(distinct(nodes, vectors)[1], 2, dim=1)
                total = total + self.discrepancy_weight * distance_correlation(*halves)
        return total
