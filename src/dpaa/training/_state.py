"""State of a training: learning rate schedule, early stopping, best epoch, and progress."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dpaa.methods.base import Method
from dpaa.methods.graph_method import GraphMethod

DIVERGED_FACTOR = 3.0
"""Times the first loss: epochs above it are counted."""
AUTO_DISTANCE = 1.5
"""`auto` is the number of steps in which Adam, at most the learning rate a step, can move a number by this much."""


def learning_rate_at(step: int, method: GraphMethod) -> float:
    """Compute the learning rate of a step, `learning_rate · min(step / w, √(w / step))` with w = `warmup_steps`.

    Adam divides each gradient by its own size, so its first steps move every number by the whole learning rate,
    however small or noisy its gradient: small first steps keep that noise out of the tables.  The fall afterwards
    (that of "Attention is all you need") needs no end of training to be known; `constant` leaves it out.

    Parameters
    ----------
    step : from 1
    method : whose schedule it is

    Returns
    -------
    the learning rate
    """
    warmup = max(method.warmup_steps, 1)
    if step < warmup:
        return method.learning_rate * step / warmup
    if method.learning_rate_schedule == "constant":
        return method.learning_rate
    return method.learning_rate * math.sqrt(warmup / step)


@dataclass
class Best:
    """The best validation so far; part of a checkpoint."""

    value: float = float("-inf")
    epoch: int = 0
    step: int = 0


@dataclass(frozen=True)
class EpochReport:
    """Results of an epoch.

    Parameters
    ----------
    epoch, loss, seconds : number, mean loss and duration
    valid : validation metrics; empty where none was due
    extras : what the method's `refresh` returned
    best_epoch : so far
    learning_rate : of the last step; None where it is constant
    """

    epoch: int
    loss: float
    seconds: float
    valid: dict[str, float]
    extras: dict[str, Any]
    best_epoch: int
    learning_rate: float | None = None

    def line(self) -> dict[str, Any]:
        """Make the epoch's line of `history.jsonl`.

        Returns
        -------
        plain data
        """
        fixed = {"epoch": self.epoch, "loss": self.loss, "seconds": round(self.seconds, 4), "valid": self.valid}
        rate = {} if self.learning_rate is None else {"learning_rate": self.learning_rate}
        return fixed | rate | self.extras


CHECKPOINT_SECONDS = 30.0


@dataclass
class Callbacks:
    """Functions that a fit calls; all are optional.

    Parameters
    ----------
    on_start : before a training: the method and notes on its data
    on_epoch : after every epoch
    stop_requested : whether to stop with a checkpoint, which raises `Interrupted`
    finish_requested : whether to end after this epoch, with the best one so far
    say : receives other messages for the user
    checkpoint_seconds : seconds between two checkpoints
    """

    on_start: Callable[[Method, list[str]], None] = lambda _method, _notes: None
    on_epoch: Callable[[EpochReport], None] = lambda _report: None
    stop_requested: Callable[[], bool] = lambda: False
    finish_requested: Callable[[], bool] = lambda: False
    say: Callable[[str], None] = lambda _line: None
    checkpoint_seconds: float = field(default_factory=lambda: CHECKPOINT_SECONDS)


@dataclass
class Progress:
    """Where a training is: what a checkpoint keeps besides tensors."""

    epoch: int = 1
    batch: int = 0
    """Batches of the epoch that are done."""
    step: int = 0
    """Steps that are done, in all epochs."""
    loss_sum: float = 0.0
    triples: int = 0
    epoch_seconds: float = 0.0
    extras: dict[str, Any] | None = None
    """What `refresh` returned for this epoch; None before it is called."""
    start_loss: float | None = None
    """Loss of the very first batch."""
    epochs_above: int = 0
    """Epochs in a row far above it."""
    lowest_loss: float = math.inf
    """Of an epoch after the first."""
    validated_step: int | None = None
    """The step after which the last validation was."""
    best: Best = field(default_factory=Best)

    @property
    def loss(self) -> float:
        """Mean loss of the epoch so far."""
        return self.loss_sum / max(self.triples, 1)

    @property
    def start_level(self) -> float:
        """The first loss, at least that of random guessing: tables that were trained before begin below it."""
        return math.inf if self.start_loss is None else max(self.start_loss, math.log(2))

    def next_epoch(self) -> Progress:
        """The beginning of the next epoch."""
        return Progress(
            self.epoch + 1,
            step=self.step,
            start_loss=self.start_loss,
            epochs_above=self.epochs_above + 1 if self.loss > DIVERGED_FACTOR * self.start_level else 0,
            lowest_loss=self.lowest_loss if self.epoch == 1 else min(self.lowest_loss, self.loss),
            validated_step=self.validated_step,
            best=self.best,
        )


@dataclass
class EarlyStopping:
    """Keeps the best epoch and ends training when none has been better for long; ties are not better.

    Parameters
    ----------
    patience : epochs since the best one, and
    patience_steps : steps since then: both must have passed
    minimum_steps : steps before which training does not end
    best : the best epoch so far
    """

    patience: int
    patience_steps: int = 0
    minimum_steps: int = 0
    best: Best = field(default_factory=Best)

    @classmethod
    def of(cls, method: GraphMethod) -> EarlyStopping:
        """Take the hyperparameters of a method; numbers of steps that are `auto` grow as the learning rate falls."""
        auto = max(1, round(AUTO_DISTANCE / method.learning_rate))
        patience, minimum = (
            auto if steps == "auto" else steps for steps in (method.patience_steps, method.minimum_steps)
        )
        return cls(method.patience, patience, minimum)

    def improved(self, epoch: int, value: float, step: int = 0) -> bool:
        """Whether this epoch is the best so far, which is then kept."""
        if value <= self.best.value:  # the earlier of equals stays: it is the shorter training
            return False
        self.best.value, self.best.epoch, self.best.step = value, epoch, step
        return True

    def exhausted(self, epoch: int, step: int = 0) -> bool:
        """Whether enough has been trained, and patience has run out since the best epoch."""
        return (
            epoch - self.best.epoch >= self.patience
            and step - self.best.step >= self.patience_steps
            and step >= self.minimum_steps
        )
