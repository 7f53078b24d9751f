"""MACR: learn item attractiveness and user activity separately, and subtract them (Wei et al., KDD 2021)."""

from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from dpaa.methods._strengths import ChosenStrengths, ScoresAt
from dpaa.methods.graph_method import Batch, Histories, Rows, fitted, method
from dpaa.methods.tables import cross_entropy

BRANCHES = 1
"""Number of the random stream that the branches are drawn from."""
REFERENCES = (0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 40.0)
"""Values of c tried on validation; small ones matter, as c is on the scale of the scores."""


@method(
    "macr",
    title="item and user branches learned, their direct effect subtracted",
    paper="Wei et al., Model-Agnostic Counterfactual Reasoning for Popularity Bias, KDD 2021",
    grid={"item_weight": (1e-4, 1e-3, 1e-2), "user_weight": (1e-4, 1e-3, 1e-2)},
)
class MACR(ChosenStrengths):
    """LightGCN with two branches and cross-entropy.

    q_i = σ(e_i·w_i),   q_u = σ(e_u·w_u),   y_ui = s_ui q_i q_u
    loss = CE(y) + α CE(q_i) + β CE(q_u) + L2
    score = (s_ui − c) q_i                          (q_u does not change a user's ranking)

    Early stopping ranks with c = 0 where c is chosen on validation afterwards.
    """

    item_weight: float = Field(default=1e-2, ge=0, description="α: weight of the item branch in the loss")
    user_weight: float = Field(default=1e-3, ge=0, description="β: weight of the user branch in the loss")
    reference: Literal["tune"] | float = Field(
        default="tune", description="c, subtracted from scores; `tune`: by validation"
    )
    pairs: Literal["own", "all"] = Field(
        default="own",
        description="multiply a score by its own branches, or by all of the batch (public code; B² memory)",
    )

    strengths: ClassVar[dict[str, tuple[float, ...]]] = {"reference": REFERENCES}

    item_branch: Tensor = fitted("embedding_size")
    user_branch: Tensor = fitted("embedding_size")

    def parameters(self) -> dict[str, Tensor]:
        """`w_i` and `w_u`, each (d,), with Xavier's deviation."""
        size = self.embedding_size
        drawn = torch.empty(2, size).normal_(0.0, (2.0 / (size + 1)) ** 0.5, generator=self.generator(BRANCHES))
        return {"item_branch": drawn[0].clone(), "user_branch": drawn[1].clone()}

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """Cross-entropy of the matched scores and of both branches, and LightGCN's L2."""
        user, *items = batch.split(rows.index)
        active = rows.projections(user, self.user_branch)
        attractive = [rows.projections(item, self.item_branch) for item in items]
        user_share, matched = torch.sigmoid(active), []
        for item, logit in zip(items, attractive, strict=True):
            score, branches = rows.dots(user, item), torch.sigmoid(logit) * user_share
            matched.append(score * (branches if self.pairs == "own" else branches[:, None]))
        by_item = self.item_weight * cross_entropy(*attractive)
        by_user = self.user_weight * cross_entropy(active, active)
        return cross_entropy(*matched) + by_item + by_user + self.l2_term(batch, rows)

    @torch.no_grad()
    def scores_at(self, items: Tensor | None = None, histories: Histories | None = None) -> ScoresAt:
        """`(s − c) q_i`."""
        plain = self.readout_vectors(items, histories)
        attraction = torch.sigmoid(plain.items @ self.item_branch)

        def scores(index: Tensor, references: Sequence[tuple[float, ...]]) -> Iterator[Tensor]:
            score = plain.scores(index)
            return ((score - reference) * attraction for (reference,) in references)

        return scores
