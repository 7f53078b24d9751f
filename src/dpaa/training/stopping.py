"""When to stop, and which epoch to keep, by a number it is handed."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpaa.methods.graph_method import GraphMethod


@dataclass
class EarlyStopping:
    """Remembers the best value and how long ago it was; larger is better, a tie is not better."""

    patience: int
    """Epochs since the best one, and …"""
    patience_steps: int = 0
    """… steps since then: both must have passed."""
    minimum_steps: int = 0
    """Steps before which nothing ends."""
    smoothing: float = 0.0
    """What is compared is `smoothing · the last compared value + (1 − smoothing) · the new one`."""
    best_value: float = float("-inf")
    """Of what is compared."""
    best_epoch: int = 0
    best_step: int = 0
    best_measured: float = float("-inf")
    """What was measured in the best epoch, before smoothing."""
    smoothed: float | None = None
    """The last compared value."""

    @classmethod
    def of(cls, method: GraphMethod) -> EarlyStopping:
        """As the settings ask; `auto` numbers of steps grow as the learning rate falls."""
        return cls(
            method.patience,
            resolved_steps(method.patience_steps, PATIENCE_DISTANCE, method),
            resolved_steps(method.minimum_steps, MINIMUM_DISTANCE, method),
            method.validation_smoothing,
        )

    def improved(self, epoch: int, value: float, step: int = 0) -> bool:
        """Whether this epoch is the best so far (and remember it)."""
        before = value if self.smoothed is None else self.smoothed
        self.smoothed = self.smoothing * before + (1 - self.smoothing) * value if self.smoothing else value
        if self.smoothed <= self.best_value:
            return False
        self.best_value, self.best_measured = self.smoothed, value
        self.best_epoch, self.best_step = epoch, step
        return True

    def exhausted(self, epoch: int, step: int = 0) -> bool:
        """Whether enough has been trained, and patience has run out since the best epoch."""
        return (
            epoch - self.best_epoch >= self.patience
            and step - self.best_step >= self.patience_steps
            and step >= self.minimum_steps
        )


PATIENCE_DISTANCE, MINIMUM_DISTANCE = 1.5, 1.5
"""How far Adam can carry a number, at most the learning rate a step, in `auto` steps of patience and at least."""


def resolved_steps(asked: int | str, distance: float, method: GraphMethod) -> int:
    """A number of steps; `auto` is that in which Adam can carry a number that far."""
    return asked if isinstance(asked, int) else max(1, round(distance / method.learning_rate))


def learning_rate_at(step: int, method: GraphMethod) -> float:
    """The learning rate of a step, counted from 1: `learning_rate · min(step / w, √(w / step))`, w = `warmup_steps`.

    Adam divides each gradient by its own size, so its first steps move every number by the whole learning rate,
    however small or noisy its gradient: small first steps keep that noise out of the tables.  The fall afterwards
    (that of "Attention is all you need") needs no end of training to be known; `constant` leaves it out.
    """
    warmup = max(method.warmup_steps, 1)
    if step < warmup:
        return method.learning_rate * step / warmup
    if method.learning_rate_schedule == "constant":
        return method.learning_rate
    return method.learning_rate * math.sqrt(warmup / step)
