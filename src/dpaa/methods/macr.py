"""MACR: learn how attractive an item is to anyone and how active a user is, and subtract it (Wei et al., KDD 2021).

    q_i = σ(e_i·w_i),   q_u = σ(e_u·w_u),   y_ui = s_ui q_i q_u
    loss = CE(y) + α CE(q_i) + β CE(q_u) + L2
    score = (s_ui − c) q_i                          (q_u does not change a user's ranking)

Early stopping looks at c = 0; c is chosen on validation afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from dpaa.methods.base import ChosenAfterwards, Histories, Scorer, ScorerFamily, Validation, fitted, method
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.rows import Batch, Rows, cross_entropy

BRANCHES = 1
"""Number of the random stream that the branches are drawn from."""
REFERENCES = (0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 40.0)
"""Values of c tried on validation; small ones matter, c lives on the scale of the scores."""


def matched(score: Tensor, item_share: Tensor, user_share: Tensor, pairs: str) -> Tensor:
    """`y = s q_i q_u`: (batch,) for a score's own branches, (batch, batch) for all of them."""
    branches = item_share * user_share
    return score * branches if pairs == "own" else score * branches[:, None]


@method(
    "macr",
    title="item and user branches learned, their direct effect subtracted",
    paper="Wei et al., Model-Agnostic Counterfactual Reasoning for Popularity Bias, KDD 2021",
    grid={
        "item_weight": (1e-4, 1e-3, 1e-2),
        "user_weight": (1e-4, 1e-3, 1e-2),
    },
)
class MACR(ChosenAfterwards, GraphMethod):
    """LightGCN with two branches and cross-entropy."""

    item_weight: float = Field(default=1e-2, ge=0, description="α: weight of the item branch in the loss")
    user_weight: float = Field(default=1e-3, ge=0, description="β: weight of the user branch in the loss")
    reference: Literal["tune"] | float = Field(
        default="tune",
        description=(
            "c: what is subtracted from scores at inference; `tune` chooses on validation (0 where there is none)"
        ),
    )
    pairs: Literal["own", "all"] = Field(
        default="own",
        description=(
            "`own`: a score meets its own branches; `all`: every branch of the batch, as public code has it (B² memory)"
        ),
    )

    saved: ClassVar[dict[str, tuple[str | int, ...]]] = {
        "item_branch": ("embedding_size",),
        "user_branch": ("embedding_size",),
        "reference": (),
    }

    item_branch: Tensor = fitted()
    user_branch: Tensor = fitted()
    chosen_reference: float = fitted()
    """c in use."""

    def begin(self) -> None:
        """Early stopping looks at c = 0."""
        self.chosen_reference = 0.0

    def parameters(self) -> dict[str, Tensor]:
        """`w_i` and `w_u`, each (d,), drawn as Xavier has it."""
        size = self.embedding_size
        drawn = torch.empty(2, size).normal_(0.0, (2.0 / (size + 1)) ** 0.5, generator=self.generator(BRANCHES))
        return {"item_branch": drawn[0].clone(), "user_branch": drawn[1].clone()}

    def logits(self, rows: Rows, places: Tensor, weight: Tensor) -> Tensor:
        """What σ turns into q.  (places,)."""
        return rows.projections(places, weight)

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """Cross-entropy of the matched scores and of both branches, and LightGCN's L2."""
        user, positive, negative = batch.split(rows.places)
        user_logit = self.logits(rows, user, self.user_branch)
        positive_logit, negative_logit = (self.logits(rows, item, self.item_branch) for item in (positive, negative))
        active, pairs = torch.sigmoid(user_logit), self.pairs
        positive = matched(rows.dots(user, positive), torch.sigmoid(positive_logit), active, pairs)
        negative = matched(rows.dots(user, negative), torch.sigmoid(negative_logit), active, pairs)
        by_item = self.item_weight * cross_entropy(positive_logit, negative_logit)
        by_user = self.user_weight * cross_entropy(user_logit, user_logit)
        return cross_entropy(positive, negative) + by_item + by_user + self.l2_term(batch, rows)

    @torch.no_grad()
    def _attraction(self, items: Tensor | None) -> Tensor:
        """q_i, (items,)."""
        vectors = self.item_embedding if items is None else self.item_embedding[items]
        return torch.sigmoid(vectors @ self.item_branch)

    def vectors(self, items: Tensor | None = None, histories: Histories | None = None) -> None:
        """Its scores are no inner product."""
        del items, histories

    def scorer(self, items: Tensor | None = None, histories: Histories | None = None) -> Scorer:
        """`(s − c) q_i`."""
        plain, attraction = super().scorer(items, histories), self._attraction(items)
        return lambda index: (plain(index) - self.chosen_reference) * attraction

    def finish(self) -> None:
        """Final vectors, and c where it is set."""
        super().finish()
        self.chosen_reference = 0.0 if self.reference == "tune" else self.reference

    def choose(self, validation: Validation) -> dict[str, float]:
        """The c with the best validation recall, the smallest of equals; one pass over the scores."""
        if self.reference != "tune":
            return {}

        def family(items: Tensor | None) -> ScorerFamily:
            plain, attraction = super(MACR, self).scorer(items), self._attraction(items)

            def several(index: Tensor) -> Iterator[Tensor]:
                found = plain(index)
                return ((found - reference) * attraction for reference in REFERENCES)

            return several

        recalls = validation.recalls_of(family, len(REFERENCES), self.graph.device)
        self.chosen_reference = REFERENCES[recalls.index(max(recalls))]
        return {"reference": self.chosen_reference}
