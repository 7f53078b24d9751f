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
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import softplus

from dpaa.data.sampling import MarginSampler, TripleSampler
from dpaa.methods.backbone import GraphMethod
from dpaa.methods.contrast import distinct
from dpaa.methods.distances import distance_correlation
from dpaa.methods.losses import margins
from dpaa.methods.rows import Batch, Rows
from dpaa.methods.settings import Settings, TrainedSettings

COMPARED = 256
"""Triples of a batch whose users and items the distance correlation is taken over: it costs their number squared."""


class DiceSettings(TrainedSettings):
    """LightGCN's settings and DICE's; vectors of `embedding_size` hold both halves."""

    interest_weight: float = Field(default=0.1, ge=0)
    """a: of the pairs that show interest."""
    conformity_weight: float = Field(default=0.1, ge=0)
    """b: of what they show of conformity."""
    discrepancy_weight: float = Field(default=0.01, ge=0)
    """c: how much the halves are kept from saying the same."""
    margin: Literal["auto"] | Annotated[float, Field(ge=0)] = "auto"
    """How many more interactions a more popular negative item has at least, in the first epoch; `auto` is 40, or a
    tenth of the largest count where that is less."""
    pool: int = Field(default=40, ge=1)
    """How many untaken items there must be of a kind (more, less popular) for negative items to be drawn from it."""
    decay: float = Field(default=0.9, gt=0, le=1)
    """What a, b and the margin are multiplied by after every epoch."""
    negatives: Literal["popularity", "uniform"] = "popularity"
    """By a fair coin more popular by the margin or half as popular at most; or any item not taken.  With `uniform` and
    a = b = c = 0 it is LightGCN."""


class DICE(GraphMethod):
    """LightGCN in two halves.  Changes: `sampler_type`, `batches`, `loss`."""

    name: ClassVar[str] = "dice"
    title: ClassVar[str] = "interest and conformity learned apart, in the two halves of every vector"
    paper: ClassVar[str] = "Zheng et al., Disentangling User Interest and Conformity, WWW 2021"
    version: ClassVar[int] = 2
    settings_type: ClassVar[type[Settings]] = DiceSettings
    grid: ClassVar[dict[str, tuple[object, ...]]] = {
        "interest_weight": (0.01, 0.1, 0.5),
        "conformity_weight": (0.01, 0.1, 0.5),
    }
    wide: ClassVar[dict[str, tuple[object, ...]]] = {"discrepancy_weight": (0.0, 0.01, 0.1)}

    settings: DiceSettings

    @property
    def sampler_type(self) -> type[TripleSampler]:
        """By popularity, unless set otherwise."""
        return MarginSampler if self.settings.negatives == "popularity" else TripleSampler

    @cached_property
    def first_margin(self) -> float:
        """The margin of the first epoch."""
        if self.settings.margin != "auto":
            return self.settings.margin
        return min(40.0, 0.1 * self.graph.item_degree.max().item())

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """Triples by the epoch's margin."""
        if isinstance(self.sampler, MarginSampler):
            self.sampler.margin = self.first_margin * self.settings.decay ** (epoch - 1)
            self.sampler.pool = self.settings.pool
        yield from super().batches(epoch, start)

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """LightGCN's on whole vectors, and the halves' own terms: means over all pairs, as in the authors' code."""
        total, settings = super().loss(batch, rows), self.settings
        interest, conformity = torch.tensor_split(rows.readout, 2, dim=1)
        shrunk = settings.decay ** max(batch.epoch - 1, 0)
        count = self.graph.item_degree
        popular = (count[batch.negative] > count[batch.positive]).to(interest.dtype)
        if settings.interest_weight:
            likes = softplus(-margins(*batch.split(interest)))
            total = total + shrunk * settings.interest_weight * (popular * likes).mean()
        if settings.conformity_weight:
            follows = margins(*batch.split(conformity))
            terms = popular * softplus(follows) + (1.0 - popular) * softplus(-follows)
            total = total + shrunk * settings.conformity_weight * terms.mean()
        if settings.discrepancy_weight:
            user, *items = (part[:COMPARED] for part in batch.split(rows.readout))
            both = torch.cat([batch.positive[:COMPARED], batch.negative[:COMPARED]])
            for nodes, vectors in ((batch.users[:COMPARED], user), (both, torch.cat(items))):
                _, some = distinct(nodes, vectors)
                alike = distance_correlation(*torch.tensor_split(some, 2, dim=1))
                total = total + settings.discrepancy_weight * alike
        return total
