"""CVIB: the mean prediction on drawn triples must agree with that on random pairs (Wang et al., NeurIPS 2020).

    p = σ(s),   m₊ = mean p on the triples' pairs F,   m₋ = mean p on random pairs C
    loss = mean_F BCE + α [ −m₊ log m₋ − (1 − m₊) log(1 − m₋) ] + γ mean_F p log p + L2

Random pairs are drawn anew for every batch from all users × items; positive pairs are not excluded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import logsigmoid

from dpaa.methods.base import method
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.rows import Batch, Rows, cross_entropy

RANDOM_PAIRS = 1
"""Number of the random stream that pairs are drawn from, beside the triples' own."""


@dataclass(frozen=True)
class BatchWithRandomPairs(Batch):
    """Triples, and twice as many pairs drawn from all users × items; each of the two (2 · batch,) int64."""

    random_users: Tensor
    random_items: Tensor

    def nodes(self, n_users: int) -> Tensor:
        """The triples' nodes, then those of the random pairs.  (7 · batch,)."""
        return torch.cat([super().nodes(n_users), self.random_users, self.random_items + n_users])

    def split(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Rows of users, positive, negative items, then of random users and items."""
        size = len(self)
        return torch.split(rows, [size, size, size, 2 * size, 2 * size])


def agreement(drawn: Tensor, random: Tensor) -> Tensor:
    """Cross-entropy of the two mean predictions, least where they agree.  A scalar."""
    mean, other = drawn.mean(), random.mean().clamp(1e-7, 1 - 1e-7)
    return -mean * other.log() - (1 - mean) * (1 - other).log()


def confidence(drawn_scores: Tensor) -> Tensor:
    """`mean p log p`, between −1/e and 0.  A scalar."""
    return (torch.sigmoid(drawn_scores) * logsigmoid(drawn_scores)).mean()


@method(
    "cvib",
    title="cross-entropy, with predictions balanced against random pairs",
    paper="Wang et al., Information Theoretic Counterfactual Learning, NeurIPS 2020",
    grid={
        "agreement_weight": (0.01, 0.1, 0.5, 1.0, 2.0),
        "confidence_weight": (1e-5, 1e-3, 1e-2, 0.1, 1.0),
    },
)
class CVIB(GraphMethod):
    """LightGCN with cross-entropy and two information terms."""

    agreement_weight: float = Field(
        default=0.1, ge=0, description="α: weight of the agreement between drawn and random pairs"
    )
    confidence_weight: float = Field(
        default=0.01, ge=0, description="γ: weight of `p log p`, which punishes predictions that are too sure"
    )

    def batches(self, epoch: int, start: int = 0) -> Iterator[BatchWithRandomPairs]:
        """LightGCN's triples with random pairs; positive pairs are not excluded."""
        rng = np.random.default_rng([self.seed, epoch, RANDOM_PAIRS])
        n_pairs = 2 * self.tables.sampler.n_interactions
        users = torch.from_numpy(rng.integers(0, self.graph.n_users, n_pairs)).to(self.graph.device)
        items = torch.from_numpy(rng.integers(0, self.graph.n_items, n_pairs)).to(self.graph.device)
        for number, batch in enumerate(super().batches(epoch, start), start):
            first = 2 * number * self.compute.batch_size
            part = slice(first, first + 2 * len(batch))
            triple = (batch.users, batch.positive, batch.negative)
            yield BatchWithRandomPairs(*triple, users[part], items[part], epoch=epoch, number=number)

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """Cross-entropy, agreement, confidence, and LightGCN's L2."""
        user, positive, negative, random_user, random_item = batch.split(rows.places)
        positive, negative = rows.dots(user, positive), rows.dots(user, negative)
        drawn = torch.cat([positive, negative])
        agreed = agreement(torch.sigmoid(drawn), torch.sigmoid(rows.dots(random_user, random_item)))
        information = self.agreement_weight * agreed + self.confidence_weight * confidence(drawn)
        return 0.5 * cross_entropy(positive, negative) + information + self.l2_term(batch, rows)
