"""SSM: the positive item against many others at once, by a sampled softmax (Wu et al., TOIS 2024).

    loss = mean[log Σ_{j ∈ {i} ∪ N} exp(c_uj / τ) − c_ui / τ] + L2

c is the cosine.  N are the other positive items of the batch: popular ones come up more often, which holds them back;
the correction by log q takes that away again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import normalize

from dpaa.kernels.known_pairs import KnownPairs
from dpaa.methods.backbone import GraphMethod
from dpaa.methods.base import Histories, Scorer, Vectors
from dpaa.methods.contrast import Hide, log_sum_exp, others, softmax_loss
from dpaa.methods.losses import scores
from dpaa.methods.neighbourhood import known_pairs
from dpaa.methods.popularity import chance_of_being_drawn
from dpaa.methods.rows import Batch, Rows
from dpaa.methods.settings import Settings, TrainedSettings

DRAWN_ITEMS = 1
"""Number of the random stream that negative items are drawn from, beside the triples' own."""


class SsmSettings(TrainedSettings):
    """LightGCN's settings and the softmax's."""

    temperature: float = Field(default=0.1, gt=0)
    """τ: the smaller, the more the hardest negatives count."""
    negatives: Literal["batch", "drawn", "own"] = "batch"
    """`batch`: the other positive items of the batch; `drawn`: items drawn once a batch; `own`: the triple's only."""
    n_negatives: int = Field(default=128, ge=1, le=1_000_000)
    """How many items are drawn."""
    negative_power: float = Field(default=0.0, ge=0, le=4)
    """They are drawn in proportion to count^power; 0 is uniformly."""
    log_q: bool = False
    """Whether the log of how often an item is expected among the negatives is subtracted from its logit there, so that
    their sum is in expectation that over all items."""
    known_negatives: Literal["keep", "hide"] = "keep"
    """Whether items of the batch that the user took too count as negatives."""
    similarity: Literal["cosine", "inner-product"] = "cosine"
    """What is compared in training."""
    ranking: Literal["inner-product", "cosine"] = "inner-product"
    """What is ranked by."""


@dataclass(frozen=True)
class BatchWithItems(Batch):
    """Triples, and items that are negatives for all of them, (n,) int64."""

    items: Tensor

    def nodes(self, n_users: int) -> Tensor:
        """The triples' nodes, then those items.  (3 · batch + n,)."""
        return torch.cat([super().nodes(n_users), self.items + n_users])

    def split(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Rows of users, positive and negative items, then of the items for all."""
        size = len(self)
        return torch.split(rows, [size, size, size, len(self.items)])


class SSM(GraphMethod):
    """LightGCN with a sampled softmax in place of BPR.  Changes: `batches`, `loss`, `scorer`, `vectors`."""

    name: ClassVar[str] = "ssm"
    title: ClassVar[str] = "the positive item against all others of the batch, by a sampled softmax"
    paper: ClassVar[str] = "Wu et al., On the Effectiveness of Sampled Softmax Loss for Item Recommendation, TOIS 2024"
    version: ClassVar[int] = 2  # log_q counts how many negatives there are
    settings_type: ClassVar[type[Settings]] = SsmSettings
    grid: ClassVar[dict[str, tuple[object, ...]]] = {"temperature": (0.05, 0.1, 0.15, 0.2, 0.3)}
    wide: ClassVar[dict[str, tuple[object, ...]]] = {"log_q": (False, True), "negatives": ("batch", "drawn")}

    settings: SsmSettings

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """LightGCN's triples, with items drawn for each batch where they are asked for."""
        for batch in super().batches(epoch, start):
            if self.settings.negatives != "drawn":
                yield batch
                continue
            rng = np.random.default_rng([self.settings.seed, epoch, DRAWN_ITEMS, batch.number])
            place = np.searchsorted(self._cumulative, rng.random(self.settings.n_negatives), side="right")
            items = torch.from_numpy(np.minimum(place, self.graph.n_items - 1)).to(self.device)
            triple = (batch.users, batch.positive, batch.negative)
            yield BatchWithItems(*triple, items, epoch=epoch, number=batch.number)

    @cached_property
    def chance(self) -> Tensor:
        """q: how likely an item is to come up as a negative, (n_items,)."""
        if self.settings.negatives == "batch":
            return chance_of_being_drawn(self.graph, self.settings.sampler)
        weight = self.graph.item_degree.double() ** self.settings.negative_power  # 0⁰ = 1
        return (weight / weight.sum()).float()

    @cached_property
    def _cumulative(self) -> np.ndarray:
        return np.cumsum(self.chance.double().cpu().numpy())

    @cached_property
    def _known(self) -> KnownPairs:
        return known_pairs(self.graph)

    def negative_logits(self, batch: Batch, parts: tuple[Tensor, ...]) -> Tensor:
        """`log Σ exp` over the negatives of each row, from rows as they are compared.  (batch,)."""
        settings, user, positive, own = self.settings, *parts[:3]
        if settings.negatives == "own":
            return scores(user, own) / settings.temperature
        hide_own: Hide | None = None
        if isinstance(batch, BatchWithItems):
            drawn, columns, many = batch.items, parts[3], len(batch.items)
            bias = torch.zeros(many, device=user.device)
        else:
            drawn, columns, bias, hide_own = others(batch.positive, positive)
            many = len(batch) - 1
        if settings.log_q:  # how often each is expected among the negatives
            bias = bias - (many * self.chance[drawn]).clamp(min=1e-12).log()

        def hide(logits: Tensor, part: slice) -> None:
            if hide_own is not None:
                hide_own(logits, part)
            if settings.known_negatives == "hide":
                keys = batch.users[part, None] * self.graph.n_items + drawn
                logits.masked_fill_(self._known.contain(keys), -torch.inf)

        return log_sum_exp(user, columns, settings.temperature, bias, hide)

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """The softmax, and L2 of the rows of users and positive items."""
        parts = batch.split(normalize(rows.readout) if self.settings.similarity == "cosine" else rows.readout)
        positive = scores(parts[0], parts[1]) / self.settings.temperature
        l2 = (self.settings.l2 / len(batch)) * rows.half_squares(2 * len(batch))
        return softmax_loss(positive, self.negative_logits(batch, parts)) + l2

    def vectors(self, items: Tensor | None = None, histories: Histories | None = None) -> Vectors:
        """The read-out, items at length 1 where cosines are ranked by (a user's length changes no order)."""
        found = self.readout_vectors(items, histories)
        return found if self.settings.ranking == "inner-product" else Vectors(found.queries, normalize(found.items))

    def scorer(self, items: Tensor | None = None, histories: Histories | None = None) -> Scorer:
        """The inner product of those."""
        vectors = self.vectors(items, histories)
        return lambda index: vectors.queries(index) @ vectors.items.T
