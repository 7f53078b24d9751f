"""MACR: learn how attractive an item is to anyone and how active a user is, and subtract it (Wei et al., KDD 2021)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from dpaa.methods.base import ChosenAfterwards, Histories, Scorer, ScorerFamily, Validation, fitted, method
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.tables import Batch, Rows, cross_entropy

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
class MACR(ChosenAfterwards, GraphMethod):
    """LightGCN with two branches and cross-entropy.

    q_i = σ(e_i·w_i),   q_u = σ(e_u·w_u),   y_ui = s_ui q_i q_u
    loss = CE(y) + α CE(q_i) + β CE(q_u) + L2
    score = (s_ui − c) q_i                          (q_u does not change a user's ranking)

    Early stopping ranks with c = 0; c is chosen on validation afterwards.
    """

    item_weight: float = Field(default=1e-2, ge=0, description="α: weight of the item branch in the loss")
    user_weight: float = Field(default=1e-3, ge=0, description="β: weight of the user branch in the loss")
    reference: Literal["tune"] | float = Field(
        default="tune",
        description="c: subtracted from scores at inference; `tune` chooses on validation (0 without)",
    )
    pairs: Literal["own", "all"] = Field(
        default="own", description="whether a score meets its own branches or all of the batch (public code; B² memory)"
    )

    saved: ClassVar[dict[str, tuple[str | int, ...]]] = {
        "item_branch": ("embedding_size",),
        "user_branch": ("embedding_size",),
        "reference": (),
    }

    item_branch: Tensor = fitted()
    user_branch: Tensor = fitted()
    chosen_reference: float = fitted()

    def begin(self) -> None:
        """Early stopping ranks with c = 0."""
        self.chosen_reference = 0.0

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

    def vectors(self, items: Tensor | None = None, histories: Histories | None = None) -> None:
        """None: its scores are no inner product."""

    def scorer(self, items: Tensor | None = None, histories: Histories | None = None) -> Scorer:
        """`(s − c) q_i`."""
        plain, attraction = self.readout_vectors(items, histories), self._attraction(items)
        return lambda index: (plain.scores(index) - self.chosen_reference) * attraction

    @torch.no_grad()
    def _attraction(self, items: Tensor | None) -> Tensor:
        vectors = self.item_embedding if items is None else self.item_embedding[items]
        return torch.sigmoid(vectors @ self.item_branch)

    def finish(self) -> None:
        """Final vectors, and c where it is set."""
        super().finish()
        self.chosen_reference = 0.0 if self.reference == "tune" else self.reference

    def choose(self, validation: Validation) -> dict[str, float]:
        """The c with the best validation recall, the smallest of equals; one pass over the scores."""
        if self.reference != "tune":
            return {}

        def family(items: Tensor | None) -> ScorerFamily:
            plain, attraction = self.readout_vectors(items), self._attraction(items)

            def several(index: Tensor) -> Iterator[Tensor]:
                scores = plain.scores(index)
                return ((scores - reference) * attraction for reference in REFERENCES)

            return several

        recalls = validation.recalls_of(family, len(REFERENCES), self.graph.device)
        self.chosen_reference = REFERENCES[recalls.index(max(recalls))]
        return {"reference": self.chosen_reference}
