"""Softmax losses over negatives drawn for a batch, which differ in one function of cosines: `pair_losses`."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import normalize

from dpaa.graph.cooccurrence import Lists
from dpaa.methods._shared import items_of_users
from dpaa.methods.contrast import distinct, log_sum_exp
from dpaa.methods.graph_method import Batch, GraphMethod, Histories, Rows, Vectors, scores

DRAWN_ITEMS = 1
"""Number of the random stream that negative items are drawn from, beside the triples' own."""


class DrawnNegatives(GraphMethod):
    """Base of methods whose batches have negatives of their own, shared by all pairs of the batch."""

    n_negatives: int = Field(default=1000, ge=1, le=1_000_000, description="items sampled for each batch")

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """LightGCN's triples, with items drawn uniformly for each batch."""
        for batch in super().batches(epoch, start):
            rng = np.random.default_rng([self.seed, epoch, DRAWN_ITEMS, batch.number])
            items = torch.from_numpy(rng.integers(0, self.graph.n_items, self.n_negatives))
            yield replace(batch, more_items=(items.to(self.graph.device),))


@dataclass(frozen=True)
class Negatives:
    """The distinct items drawn for a batch, beside its users."""

    user: Tensor
    """(b, d) of length 1."""
    item: Tensor
    """(n, d) of length 1."""
    log_count: Tensor
    """(n,) logarithm of how often each was drawn."""
    taken: Tensor
    """(b, n) whether the user took the item, which is no negative then."""

    def log_sum_exp(self, temperature: float) -> Tensor:
        """Compute `log Σ_j exp(c_uj / τ)` without holding the cosines.  (b,)."""

        def hide(logits: Tensor, part: slice) -> None:
            logits.masked_fill_(self.taken[part], -torch.inf)

        return log_sum_exp(self.user, self.item, temperature, self.log_count, hide)

    def sum_of(self, values: Tensor, temperature: float) -> Tensor:
        """Compute `log Σ_j exp(x_uj / τ)` of (b, n) values x, a function of the cosines.  (b,)."""
        bias = torch.where(self.taken, -torch.inf, self.log_count)
        return torch.logsumexp(torch.add(bias, values, alpha=1.0 / temperature), dim=1)


class DrawnSoftmax(DrawnNegatives):
    """The softmax loss: the positive item against those drawn for the batch that the user did not take.

    loss = mean[log Σ_j exp(c_uj / τ) − c_ui / τ] + L2
    """

    temperature: float = Field(default=0.2, gt=0, description="τ: smaller values give hard negatives more weight")
    ranking: Literal["cosine", "inner-product"] = Field(
        default="cosine", description="scores after training: the cosine that is trained, or the inner product"
    )

    @cached_property
    def _items_of_users(self) -> Lists:
        return items_of_users(self.graph)

    def pair_losses(self, batch: Batch, positive: Tensor, negatives: Negatives) -> Tensor:
        """Compute the loss of every pair of a batch.

        Parameters
        ----------
        batch : b triples
        positive : (b,) cosines of the positive items
        negatives : the drawn items

        Returns
        -------
        (b,)
        """
        return negatives.log_sum_exp(self.temperature) - positive / self.temperature

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """The mean over the pairs, and L2 of the rows of users and positive items."""
        user, positive, _, drawn = batch.split(normalize(rows.readout))
        items, item = distinct(batch.more_items[0], drawn)
        log_count = torch.unique(batch.more_items[0], return_counts=True)[1].to(item.dtype).log()
        negatives = Negatives(user, item, log_count, self._taken(batch.users, items))
        return self.pair_losses(batch, scores(user, positive), negatives).mean() + self.l2_term(batch, rows, parts=2)

    def _taken(self, users: Tensor, items: Tensor) -> Tensor:
        """Mark which of some distinct items users took, (users, items); nothing of users who took all of them."""
        column = torch.full((self.graph.n_items,), len(items), device=items.device)
        column[items] = torch.arange(len(items), device=items.device)
        owner, item = self._items_of_users.entries(users)
        taken = torch.zeros(len(items) + 1, len(users), dtype=torch.bool, device=items.device)
        taken[column[item], owner] = True  # what was not drawn goes to the last row
        taken = taken[:-1]
        return (taken & ~taken.all(dim=0)).T  # a sum over nothing has no logarithm

    def vectors(self, items: Tensor | None = None, histories: Histories | None = None) -> Vectors:
        """Read-out vectors, at length 1 where cosines are ranked by."""
        plain = self.readout_vectors(items, histories)
        if self.ranking == "inner-product":
            return plain
        return Vectors(lambda index: normalize(plain.queries(index)), normalize(plain.items))
