"""MACR: learn item attractiveness and user activity separately, and subtract them (Wei et al., KDD 2021)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from dpaa.methods.base import ChosenAfterwards, ScorerFamily, Validation
from dpaa.methods.graph_method import Batch, GraphMethod, Histories, Rows, Scorer, fitted, method
from dpaa.methods.tables import cross_entropy

ScoresAt = Callable[[Tensor, Sequence[tuple[float, ...]]], Iterator[Tensor]]
"""Indices of users and several combinations of strengths → their scores, one block after the other."""


class ChosenStrengths(ChosenAfterwards, GraphMethod):
    """Base of methods with hyperparameters that are `tune` or a number; `tune` is 0 while training."""

    strengths: ClassVar[dict[str, tuple[float, ...]]] = {}
    """Their names, and the values tried on validation, in all combinations; kept in `chosen_<name>`."""

    def scores_at(self, items: Tensor | None = None, histories: Histories | None = None) -> ScoresAt:
        """Function from users and combinations of strengths to scores, with the arguments of `scorer`."""
        raise NotImplementedError

    def begin(self) -> None:
        """Early stopping ranks with the strengths that are set, and with 0 for those that are chosen afterwards."""
        for name in self.strengths:
            value = getattr(self, name)
            setattr(self, f"chosen_{name}", 0.0 if value == "tune" else value)

    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        """LightGCN's and the chosen strengths."""
        return super().state_shapes() | dict.fromkeys(self.strengths, ())

    def vectors(self, items: Tensor | None = None, histories: Histories | None = None) -> None:
        """None: its scores are no inner product."""

    def scorer(self, items: Tensor | None = None, histories: Histories | None = None) -> Scorer:
        """Scores at the chosen strengths."""
        scores = self.scores_at(items, histories)
        return lambda index: next(scores(index, [tuple(getattr(self, f"chosen_{name}") for name in self.strengths)]))

    def choose(self, validation: Validation) -> dict[str, float]:
        """The combination with the best validation recall, the first of equals; one pass over the scores."""
        given = [(getattr(self, name), values) for name, values in self.strengths.items()]
        points = list(itertools.product(*(values if value == "tune" else (value,) for value, values in given)))
        if len(points) == 1:
            return {}

        def family(items: Tensor | None) -> ScorerFamily:
            scores = self.scores_at(items)
            return lambda index: scores(index, points)

        recalls = validation.recalls_of(family, len(points), self.graph.device)
        chosen = dict(zip(self.strengths, points[recalls.index(max(recalls))], strict=True))
        for name, value in chosen.items():
            setattr(self, f"chosen_{name}", value)
        return chosen


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
