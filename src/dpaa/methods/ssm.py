"""SSM: the positive item against many others at once, by a sampled softmax (Wu et al., TOIS 2024).

    loss = mean[log Σ_{j ∈ {i} ∪ N} exp(c_uj / τ) − c_ui / τ] + L2

c is the cosine.  N are the other positive items of the batch: popular ones come up more often, which holds them back;
the correction by log q takes that away again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import normalize

from dpaa.graph.cooccurrence import KnownPairs
from dpaa.methods._popularity import chance_of_being_drawn, known_pairs
from dpaa.methods.base import Histories, Scorer, Vectors, method
from dpaa.methods.contrast import Hide, log_sum_exp, others, softmax_loss
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.rows import Batch, Rows, scores

DRAWN_ITEMS = 1
"""Number of the random stream that negative items are drawn from, beside the triples' own."""


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


@method(
    "ssm",
    title="the positive item against all others of the batch, by a sampled softmax",
    paper="Wu et al., On the Effectiveness of Sampled Softmax Loss for Item Recommendation, TOIS 2024",
    version=2,
    grid={"temperature": (0.05, 0.1, 0.15, 0.2, 0.3)},
    wide={"log_q": (False, True), "negatives": ("batch", "drawn")},
)
class SSM(GraphMethod):
    """LightGCN with a sampled softmax in place of BPR."""

    temperature: float = Field(default=0.1, gt=0, description="τ: the smaller, the more the hardest negatives count")
    negatives: Literal["batch", "drawn", "own"] = Field(
        default="batch",
        description=(
            "`batch`: the other positive items of the batch; `drawn`: items drawn once a batch; `own`: the "
            "triple's only"
        ),
    )
    n_negatives: int = Field(default=128, ge=1, le=1_000_000, description="how many items are drawn")
    negative_power: float = Field(
        default=0.0, ge=0, le=4, description="they are drawn in proportion to count^power; 0 is uniformly"
    )
    log_q: bool = Field(
        default=False,
        description=(
            "whether the log of how often an item is expected among the negatives is subtracted from its "
            "logit there, so that their sum is in expectation that over all items"
        ),
    )
    known_negatives: Literal["keep", "hide"] = Field(
        default="keep", description="whether items of the batch that the user took too count as negatives"
    )
    similarity: Literal["cosine", "inner-product"] = Field(default="cosine", description="what is compared in training")
    ranking: Literal["inner-product", "cosine"] = Field(default="inner-product", description="what is ranked by")

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """LightGCN's triples, with items drawn for each batch where they are asked for."""
        for batch in super().batches(epoch, start):
            if self.negatives != "drawn":
                yield batch
                continue
            rng = np.random.default_rng([self.seed, epoch, DRAWN_ITEMS, batch.number])
            place = np.searchsorted(self._cumulative, rng.random(self.n_negatives), side="right")
            items = torch.from_numpy(np.minimum(place, self.graph.n_items - 1)).to(self.graph.device)
            triple = (batch.users, batch.positive, batch.negative)
            yield BatchWithItems(*triple, items, epoch=epoch, number=batch.number)

    @cached_property
    def chance(self) -> Tensor:
        """q: how likely an item is to come up as a negative, (n_items,)."""
        if self.negatives == "batch":
            return chance_of_being_drawn(self.graph, self.sampler)
        weight = self.graph.item_degree.double() ** self.negative_power  # 0⁰ = 1
        return (weight / weight.sum()).float()

    @cached_property
    def _cumulative(self) -> np.ndarray:
        return np.cumsum(self.chance.double().cpu().numpy())

    @cached_property
    def _known(self) -> KnownPairs:
        return known_pairs(self.graph)

    def negative_logits(self, batch: Batch, parts: tuple[Tensor, ...]) -> Tensor:
        """`log Σ exp` over the negatives of each row, from rows as they are compared.  (batch,)."""
        user, positive, own = parts[:3]
        if self.negatives == "own":
            return scores(user, own) / self.temperature
        hide_own: Hide | None = None
        if isinstance(batch, BatchWithItems):
            drawn, columns, many = batch.items, parts[3], len(batch.items)
            bias = torch.zeros(many, device=user.device)
        else:
            drawn, columns, bias, hide_own = others(batch.positive, positive)
            many = len(batch) - 1
        if self.log_q:  # how often each is expected among the negatives
            bias = bias - (many * self.chance[drawn]).clamp(min=1e-12).log()

        def hide(logits: Tensor, part: slice) -> None:
            if hide_own is not None:
                hide_own(logits, part)
            if self.known_negatives == "hide":
                keys = batch.users[part, None] * self.graph.n_items + drawn
                logits.masked_fill_(self._known.contain(keys), -torch.inf)

        return log_sum_exp(user, columns, self.temperature, bias, hide)

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """The softmax, and L2 of the rows of users and positive items."""
        parts = batch.split(normalize(rows.readout) if self.similarity == "cosine" else rows.readout)
        positive = scores(parts[0], parts[1]) / self.temperature
        l2 = (self.l2 / len(batch)) * rows.half_squares(2 * len(batch))
        return softmax_loss(positive, self.negative_logits(batch, parts)) + l2

    def vectors(self, items: Tensor | None = None, histories: Histories | None = None) -> Vectors:
        """The read-out, items at length 1 where cosines are ranked by (a user's length changes no order)."""
        found = self.readout_vectors(items, histories)
        return found if self.ranking == "inner-product" else Vectors(found.queries, normalize(found.items))

    def scorer(self, items: Tensor | None = None, histories: Histories | None = None) -> Scorer:
        """The inner product of those."""
        vectors = self.vectors(items, histories)
        return lambda index: vectors.queries(index) @ vectors.items.T
