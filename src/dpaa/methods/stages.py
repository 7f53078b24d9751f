"""What a method that is made of several trainings works with: parts, verdicts, and who makes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from dpaa.methods.backbone import GraphMethod


@dataclass(frozen=True)
class Part:
    """One training on the way."""

    label: str
    method: GraphMethod
    epochs: int
    weights: list[tuple[str, Tensor]]
    """The message weights in force, as in `edges.parquet`."""
    valid: float
    """Mean over its epochs of the objective on validation."""
    best_epoch: int = 0
    """The epoch that is kept."""


@dataclass(frozen=True)
class Verdict:
    """What validation says of a model."""

    value: float
    """The objective, with the dial where it is best."""
    kappa: float
    per_user: NDArray[np.float64]
    """The same for each validation user."""


class Stages(Protocol):
    """Who trains and validates for a method that is made of several trainings."""

    def train(
        self, label: str, method: str, settings: dict[str, Any], plain: Part | None = None, start: Part | None = None
    ) -> Part:
        """A training: of its own, or one that goes on from the tables of `plain` or `start` and keeps its last epoch.

        `plain` is the pre-trained model of methods that need one.
        """

    def judge(self, method: GraphMethod, objective: str) -> Verdict:
        """The objective on validation, κ included where validation allows to choose it."""

    def exposure_in_words(self) -> str:
        """What kind of pairs validation has."""

    def say(self, line: str) -> None:
        """Tell the user."""
