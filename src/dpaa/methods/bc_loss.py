"""BC loss: pairs that popularity alone does not explain get a larger margin (Zhang et al., NeurIPS 2022).

    M_ui = 1 − σ(p_u·p_i)                                          how hard the pair is to guess from popularity
    loss = (1 − w) softmax(cos(θ_ui + M_ui) / τ) + L2

p are vectors of popularity: one for every count that occurs among users, one for every count among items.  They are
trained first, by the softmax of cos(p_u, p_i) / τ', and then stay as they are.  θ is the angle between user and item;
negatives are the other positive items of the batch.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import normalize

from dpaa.graph.kernels import Adam
from dpaa.methods.base import fitted, method
from dpaa.methods.contrast import log_sum_exp, others, softmax_loss
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.rows import Batch, Rows, scores

BRANCH = 1
"""Number of the random stream that the vectors of popularity are drawn from."""


def with_margin(cosine: Tensor, margin: Tensor) -> Tensor:
    """`cos(θ + M)`, with θ the angle whose cosine is given."""
    return torch.cos(torch.arccos(cosine.clamp(-1 + 1e-7, 1 - 1e-7)) + margin)


def batch_softmax(
    user: Tensor, item: Tensor, temperature: float, positive: Tensor, index: Tensor | None = None
) -> Tensor:
    """Softmax of the positive's logit against the other rows' items, of which `index` tells the same.  A scalar."""
    _, columns, bias, hide = others(index, item)
    negatives = log_sum_exp(user, columns, temperature, bias, hide)
    return softmax_loss(positive / temperature, negatives)


@method(
    "bc-loss",
    title="a softmax with larger margins for pairs that popularity does not explain",
    paper="Zhang et al., Incorporating Bias-aware Margins into Contrastive Loss, NeurIPS 2022",
    grid={"temperature": (0.05, 0.07, 0.1, 0.15)},
    wide={"branch_weight": (0.1, 0.5, 0.9)},
)
class BCLoss(GraphMethod):
    """LightGCN with a softmax whose margin grows where popularity fails."""

    temperature: float = Field(default=0.07, gt=0, description="τ of the main softmax")
    branch_temperature: float = Field(default=0.1, gt=0, description="τ' of the branch that knows popularity only")
    branch_weight: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description=(
            "w: what the branch takes of the loss; it is a constant by then, so only L2 counts for more the larger w is"
        ),
    )
    margin: float = Field(
        default=1.0, ge=0, le=3, description="times M: how much of the margin is in force; with 0 and w = 0 it is SSM"
    )
    branch_epochs: int = Field(
        default=5, ge=0, description="epochs of the branch's own training, before the first of the table"
    )
    branch_learning_rate: float = Field(default=1e-3, gt=0, description="Adam's step size in them")

    user_popularity: Tensor = fitted()
    """p of each count that occurs among users."""
    item_popularity: Tensor = fitted()
    _branch_trained: bool = False

    @cached_property
    def _levels(self) -> tuple[tuple[int, Tensor], ...]:
        """Of users and of items: how many counts there are, and which of them each node has."""
        found = (
            torch.unique(degree, return_inverse=True) for degree in (self.graph.user_degree, self.graph.item_degree)
        )
        return tuple((len(levels), place) for levels, place in found)

    def begin(self) -> None:
        """Vectors p, drawn as the table is."""
        draw, size = self.generator(BRANCH), self.embedding_size
        self.user_popularity, self.item_popularity = (
            torch.empty(n, size).normal_(0.0, 0.1, generator=draw).to(self.graph.device) for n, _ in self._levels
        )
        self._branch_trained = False

    def branch(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Vectors p of the batch's users and positive items."""
        users, items = (place for _, place in self._levels)
        return self.user_popularity[users[batch.users]], self.item_popularity[items[batch.positive]]

    def refresh(self, epoch: int) -> dict[str, Any]:
        """Before the first epoch p is trained, on the triples of the first ones."""
        del epoch
        if self._branch_trained:
            return {}
        tables = [self.user_popularity.requires_grad_(), self.item_popularity.requires_grad_()]
        adam = Adam(tables)
        for number in range(1, self.branch_epochs + 1):
            for batch in self.batches(number):
                user, item = (normalize(side) for side in self.branch(batch))
                level, own = self._levels[1][1][batch.positive], scores(user, item)
                loss = batch_softmax(user, item, self.branch_temperature, own, level)
                for place, gradient in enumerate(torch.autograd.grad(loss, tables)):
                    adam.update(place, gradient, self.branch_learning_rate)
        self.user_popularity, self.item_popularity = (table.detach() for table in tables)
        self._branch_trained = True
        return {}

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """The softmax with margins, and L2 of the rows of users and positive items."""
        user, item, _ = (normalize(part) for part in batch.split(rows.readout))
        cosine = scores(user, item)
        if self.margin:
            cosine = with_margin(cosine, self.margin * (1.0 - torch.sigmoid(scores(*self.branch(batch)))))
        l2 = (self.l2 / len(batch)) * rows.half_squares(2 * len(batch))
        softmax = batch_softmax(user, item, self.temperature, cosine, batch.positive)
        return (1.0 - self.branch_weight) * softmax + l2

    def extra_state(self) -> dict[str, Tensor]:
        """The vectors p."""
        return {"user_popularity": self.user_popularity.clone(), "item_popularity": self.item_popularity.clone()}

    def load_extra_state(self, state: dict[str, Tensor]) -> None:
        """Put it back; no state is taken before they are trained."""
        self.user_popularity, self.item_popularity = state["user_popularity"].clone(), state["item_popularity"].clone()
        self._branch_trained = True
