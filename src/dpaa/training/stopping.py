"""When to stop training, and which epoch to keep."""

from __future__ import annotations

from dataclasses import dataclass, field

from dpaa.methods.graph_method import GraphMethod

AUTO_DISTANCE = 1.5
"""`auto` is the number of steps in which Adam, at most the learning rate a step, can move a number by this much."""


@dataclass
class Best:
    """The best validation so far; part of a checkpoint."""

    value: float = float("-inf")
    """Smoothed: what is compared."""
    epoch: int = 0
    step: int = 0
    measured: float = float("-inf")
    """Validation of the best epoch, before smoothing."""
    smoothed: float | None = None
    """The last compared value."""


@dataclass
class EarlyStopping:
    """Keeps the best epoch and ends training when none has been better for long; ties are not better.

    Parameters
    ----------
    patience : epochs since the best one, and
    patience_steps : steps since then: both must have passed
    minimum_steps : steps before which training does not end
    smoothing : share of the last compared value in the next one
    best : the best epoch so far
    """

    patience: int
    patience_steps: int = 0
    minimum_steps: int = 0
    smoothing: float = 0.0
    best: Best = field(default_factory=Best)

    @classmethod
    def of(cls, method: GraphMethod) -> EarlyStopping:
        """From the hyperparameters of a method; numbers of steps that are `auto` grow as the learning rate falls."""
        auto = max(1, round(AUTO_DISTANCE / method.learning_rate))
        patience, minimum = (
            auto if steps == "auto" else steps for steps in (method.patience_steps, method.minimum_steps)
        )
        return cls(method.patience, patience, minimum, method.validation_smoothing)

    def improved(self, epoch: int, value: float, step: int = 0) -> bool:
        """Whether this epoch is the best so far, which is then kept."""
        best = self.best
        before = value if best.smoothed is None else best.smoothed
        best.smoothed = self.smoothing * before + (1 - self.smoothing) * value if self.smoothing else value
        if best.smoothed <= best.value:
            return False
        best.value, best.measured, best.epoch, best.step = best.smoothed, value, epoch, step
        return True

    def exhausted(self, epoch: int, step: int = 0) -> bool:
        """Whether enough has been trained, and patience has run out since the best epoch."""
        return (
            epoch - self.best.epoch >= self.patience
            and step - self.best.step >= self.patience_steps
            and step >= self.minimum_steps
        )
