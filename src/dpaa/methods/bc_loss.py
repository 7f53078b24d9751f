"""BC loss: pairs that popularity alone does not explain get a larger margin (Zhang et al., NeurIPS 2022)."""

from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import normalize

from dpaa.graph.kernels import Adam
from dpaa.methods.contrast import PopularityVectors, batch_softmax
from dpaa.methods.graph_method import Batch, Rows, method, scores

BRANCH = 1
"""Number of the random stream that the vectors of popularity are drawn from."""


@method(
    "bc-loss",
    title="a softmax with larger margins for pairs that popularity does not explain",
    paper="Zhang et al., Incorporating Bias-aware Margins into Contrastive Loss, NeurIPS 2022",
    grid={"temperature": (0.05, 0.07, 0.1, 0.15)},
    wide={"branch_weight": (0.1, 0.5, 0.9)},
)
class BCLoss(PopularityVectors):
    """LightGCN with a softmax whose margin grows where popularity fails.

    M_ui = 1 − σ(p_u·p_i)                     how hard the pair is to guess from popularity
    loss = (1 − w) softmax(cos(θ_ui + M_ui) / τ) + L2

    p are vectors of popularity: one for every count that occurs among users, one for every count among items.  They are
    trained first, by the softmax of cos(p_u, p_i) / τ', and then stay as they are.  θ is the angle between user and
    item; negatives are the other positive items of the batch.
    """

    temperature: float = Field(default=0.07, gt=0, description="τ of the main softmax")
    branch_temperature: float = Field(default=0.1, gt=0, description="τ' of the popularity branch")
    branch_weight: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="w: the branch's share of the loss; it is constant by then, so L2 counts for more the larger w is",
    )
    margin: float = Field(default=1.0, ge=0, le=3, description="factor of the margin M; with 0 and w = 0 it is SSM")
    branch_epochs: int = Field(default=5, ge=0, description="epochs of the branch's training, before all others")
    branch_learning_rate: float = Field(default=1e-3, gt=0, description="learning rate of Adam in them")

    _changed_by_training: ClassVar[tuple[str, ...]] = ("user_popularity", "item_popularity")
    _branch_trained: bool = False

    def begin(self) -> None:
        """Draw the vectors p as the table is drawn."""
        for name, vectors in self.popularity_vectors(BRANCH).items():
            setattr(self, name, vectors.to(self.graph.device))
        self._branch_trained = False

    def branch(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Look up the popularity vectors p of a batch.

        Parameters
        ----------
        batch : triples

        Returns
        -------
        those of its users and of its positive items, (b, d) each
        """
        users, items = self._levels
        return self.user_popularity[users[batch.users]], self.item_popularity[items[batch.positive]]

    def refresh(self, epoch: int) -> dict[str, Any]:
        """Train p before the first epoch, on the triples of the first ones."""
        if self._branch_trained:
            return {}
        tables = [self.user_popularity.requires_grad_(), self.item_popularity.requires_grad_()]
        adam = Adam(tables)
        for number in range(1, self.branch_epochs + 1):
            for batch in self.batches(number):
                user, item = (normalize(side) for side in self.branch(batch))
                loss = batch_softmax(user, item, self.branch_temperature, self._levels[1][batch.positive])
                for index, gradient in enumerate(torch.autograd.grad(loss, tables)):
                    adam.update(index, gradient, self.branch_learning_rate)
        self.user_popularity, self.item_popularity = (table.detach() for table in tables)
        self._branch_trained = True
        return {}

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """The softmax with margins, and L2 of the rows of users and positive items."""
        user, item, _ = (normalize(part) for part in batch.split(rows.readout))
        cosine = scores(user, item)
        if self.margin:
            angle = torch.arccos(cosine.clamp(-1 + 1e-7, 1 - 1e-7))
            cosine = torch.cos(angle + self.margin * (1.0 - torch.sigmoid(scores(*self.branch(batch)))))
        softmax = batch_softmax(user, item, self.temperature, batch.positive, cosine)
        return (1.0 - self.branch_weight) * softmax + self.l2_term(batch, rows, parts=2)

    def load_extra_state(self, state: dict[str, Tensor]) -> None:
        """Restore p; no state is taken before they are trained."""
        super().load_extra_state(state)
        self._branch_trained = True
