"""DICE: interest and conformity learned apart, from pairs whose popularity tells which it was (Zheng et al., WWW 2021).

The first half of every vector is interest, the second conformity.  A negative item that is more popular than the one
taken shows interest (and the conformity that did not decide), one that is less popular shows conformity:

    loss = BPR(both) + a mean[more popular: BPR(interest)]
         + b mean[more popular: BPR(conformity, reversed); less popular: BPR(conformity)]
         + c dCor(interest, conformity) + L2

a, b and the margin of popularity shrink from epoch to epoch.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import softplus

from dpaa.methods._clusters import distance_correlation
from dpaa.methods.base import method
from dpaa.methods.contrast import distinct
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.rows import Batch, Rows, margins
from dpaa.methods.samplers import MarginSampler, TripleSampler

COMPARED = 256
"""Triples of a batch whose users and items the distance correlation is taken over: it costs their number squared."""


@method(
    "dice",
    title="interest and conformity learned apart, in the two halves of every vector",
    paper="Zheng et al., Disentangling User Interest and Conformity, WWW 2021",
    version=2,
    grid={
        "interest_weight": (0.01, 0.1, 0.5),
        "conformity_weight": (0.01, 0.1, 0.5),
    },
    wide={"discrepancy_weight": (0.0, 0.01, 0.1)},
)
class DICE(GraphMethod):
    """LightGCN in two halves."""

    interest_weight: float = Field(default=0.1, ge=0, description="a: of the pairs that show interest")
    conformity_weight: float = Field(default=0.1, ge=0, description="b: of what they show of conformity")
    discrepancy_weight: float = Field(
        default=0.01, ge=0, description="c: how much the halves are kept from saying the same"
    )
    margin: Literal["auto"] | Annotated[float, Field(ge=0)] = Field(
        default="auto",
        description=(
            "how many more interactions a more popular negative item has at least, in the first epoch; `auto` "
            "is 40, or a tenth of the largest count where that is less"
        ),
    )
    pool: int = Field(
        default=40,
        ge=1,
        description=(
            "how many untaken items there must be of a kind (more, less popular) for negative items to be drawn from it"
        ),
    )
    decay: float = Field(
        default=0.9, gt=0, le=1, description="what a, b and the margin are multiplied by after every epoch"
    )
    negatives: Literal["popularity", "uniform"] = Field(
        default="popularity",
        description=(
            "by a fair coin more popular by the margin or half as popular at most; or any item not taken. "
            "With `uniform` and a = b = c = 0 it is LightGCN"
        ),
    )

    @property
    def sampler_type(self) -> type[TripleSampler]:
        """By popularity, unless set otherwise."""
        return MarginSampler if self.negatives == "popularity" else TripleSampler

    @cached_property
    def first_margin(self) -> float:
        """The margin of the first epoch."""
        if self.margin != "auto":
            return self.margin
        return min(40.0, 0.1 * self.graph.item_degree.max().item())

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """Triples by the epoch's margin."""
        sampler = self.tables.sampler
        if isinstance(sampler, MarginSampler):
            sampler.margin, sampler.pool = self.first_margin * self.decay ** (epoch - 1), self.pool
        yield from super().batches(epoch, start)

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """LightGCN's on whole vectors, and the halves' own terms: means over all pairs, as in the authors' code."""
        total = super().loss(batch, rows)
        interest, conformity = torch.tensor_split(rows.readout, 2, dim=1)
        shrunk = self.decay ** max(batch.epoch - 1, 0)
        count = self.graph.item_degree
        popular = (count[batch.negative] > count[batch.positive]).to(interest.dtype)
        if self.interest_weight:
            likes = softplus(-margins(*batch.split(interest)))
            total = total + shrunk * self.interest_weight * (popular * likes).mean()
        if self.conformity_weight:
            follows = margins(*batch.split(conformity))
            terms = popular * softplus(follows) + (1.0 - popular) * softplus(-follows)
            total = total + shrunk * self.conformity_weight * terms.mean()
        if self.discrepancy_weight:
            user, *items = (part[:COMPARED] for part in batch.split(rows.readout))
            both = torch.cat([batch.positive[:COMPARED], batch.negative[:COMPARED]])
            for nodes, vectors in ((batch.users[:COMPARED], user), (both, torch.cat(items))):
                _, some = distinct(nodes, vectors)
                alike = distance_correlation(*torch.tensor_split(some, 2, dim=1))
                total = total + self.discrepancy_weight * alike
        return total
