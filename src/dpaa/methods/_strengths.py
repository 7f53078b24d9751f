"""Strengths of a correction that are chosen on validation, after training, in one pass over the scores."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

from torch import Tensor

from dpaa.methods.base import ChosenAfterwards, ScorerFamily, Validation
from dpaa.methods.graph_method import GraphMethod, Histories, Scorer

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
