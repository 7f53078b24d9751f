"""CVIB: balance the mean prediction on sampled triples with that on random pairs (Wang et al., NeurIPS 2020)."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import logsigmoid

from dpaa.methods.graph_method import Batch, GraphMethod, Rows, method
from dpaa.methods.tables import cross_entropy

RANDOM_PAIRS = 1
"""Number of the random stream that pairs are drawn from, beside the triples' own."""


def agreement(drawn: Tensor, random: Tensor) -> Tensor:
    """Cross-entropy of the two mean predictions, least where they agree.  A scalar."""
    mean, other = drawn.mean(), random.mean().clamp(1e-7, 1 - 1e-7)
    return -mean * other.log() - (1 - mean) * (1 - other).log()


@method(
    "cvib",
    title="cross-entropy, with predictions balanced against random pairs",
    paper="Wang et al., Information Theoretic Counterfactual Learning, NeurIPS 2020",
    grid={"agreement_weight": (0.01, 0.1, 0.5, 1.0, 2.0), "confidence_weight": (1e-5, 1e-3, 1e-2, 0.1, 1.0)},
)
class CVIB(GraphMethod):
    """LightGCN with cross-entropy and two information terms.

    p = σ(s),   m₊ = mean p on the triples' pairs F,   m₋ = mean p on random pairs C
    loss = mean_F BCE + α [ −m₊ log m₋ − (1 − m₊) log(1 − m₋) ] + γ mean_F p log p + L2

    Random pairs are drawn for every batch from all users × items; positive pairs are not excluded.
    """

    agreement_weight: float = Field(default=0.1, ge=0, description="α: weight of the agreement with random pairs")
    confidence_weight: float = Field(default=0.01, ge=0, description="γ: weight of `p log p`, against overconfidence")

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """LightGCN's triples, each batch with twice as many random pairs."""
        rng = np.random.default_rng([self.seed, epoch, RANDOM_PAIRS])
        n_pairs = 2 * self.tables.sampler.n_interactions
        users = torch.from_numpy(rng.integers(0, self.graph.n_users, n_pairs)).to(self.graph.device)
        items = torch.from_numpy(rng.integers(0, self.graph.n_items, n_pairs)).to(self.graph.device)
        for batch in super().batches(epoch, start):
            first = 2 * batch.number * self.compute.batch_size
            part = slice(first, first + 2 * len(batch))
            yield replace(batch, more_users=(users[part],), more_items=(items[part],))

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """Cross-entropy, agreement, confidence, and LightGCN's L2."""
        user, positive, negative, random_user, random_item = batch.split(rows.index)
        positive, negative = rows.dots(user, positive), rows.dots(user, negative)
        drawn = torch.cat([positive, negative])
        agreed = agreement(torch.sigmoid(drawn), torch.sigmoid(rows.dots(random_user, random_item)))
        confidence = (torch.sigmoid(drawn) * logsigmoid(drawn)).mean()
        information = self.agreement_weight * agreed + self.confidence_weight * confidence
        return 0.5 * cross_entropy(positive, negative) + information + self.l2_term(batch, rows)
