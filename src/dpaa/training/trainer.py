"""The loop: it asks the method and knows none by name."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from dpaa._machine import computing, give_back_memory, lasting
from dpaa.errors import DivergedError, InputError
from dpaa.graph.columns import split_columns
from dpaa.methods.graph_method import GraphMethod, with_earlier_defaults
from dpaa.methods.tables import Batch, Rows, Tables
from dpaa.training.checkpoint import Checkpoint, CheckpointFolder
from dpaa.training.optimizer import TiledAdam
from dpaa.training.start import Start
from dpaa.training.stopping import EarlyStopping, learning_rate_at
from dpaa.training.together import ONE_PROCESS, LostProcessError, Together

Validate = Callable[[GraphMethod], dict[str, float]]


MONITOR = "recall@20"
CHECKPOINT_SECONDS = 30.0
GIVE_BACK_SECONDS = 1.0
"""Tensors of a step have the size of its batch's rows, never the same: the holes between them grow for minutes."""
LONG = 10
"""Epochs in a row above the start's loss after which a training has diverged."""
ABOVE, FAR_ABOVE = 3.0, 30.0
"""Times the start's loss: above which for `LONG` epochs, and above which all along where a training is shorter.

On the built-in world with learning rates up to .1 (every method, l2 up to 1, 0 to 4 layers, D up to 256) only
`dpaa-as-printed` has epochs above 1.1 times the start: two in a row above 3 times, one at 8.4 times.  With learning
rates of 10 and more the last ten of 60 epochs of every method are all above 25 times.
"""


GO_ON, SAVE, STOP = range(3)
"""What is done after a step."""


class Interrupted(Exception):  # noqa: N818  # it is not an error: the user asked
    """Training was asked to stop and has left a checkpoint."""


@dataclass(frozen=True)
class EpochReport:
    """A line of `history.jsonl`."""

    epoch: int
    loss: float
    seconds: float
    valid: dict[str, float]
    """Empty where there was no validation after this epoch."""
    extras: dict[str, Any]
    """What the method's `refresh` said."""
    best_epoch: int
    learning_rate: float | None = None
    """Of the epoch's last step; None where it is the same all along."""

    def line(self) -> dict[str, Any]:
        """As it is stored: what a method adds stands beside the rest."""
        fixed = {"epoch": self.epoch, "loss": self.loss, "seconds": round(self.seconds, 4), "valid": self.valid}
        rate = {} if self.learning_rate is None else {"learning_rate": self.learning_rate}
        return fixed | rate | self.extras


REMEMBERED = ("best_value", "best_epoch", "best_step", "best_measured", "smoothed")
"""Of early stopping, in a checkpoint."""


@dataclass
class Progress:
    """Where training stands; with the tensors it is a whole checkpoint."""

    epoch: int = 1
    batch: int = 0
    loss_sum: float = 0.0
    triples: int = 0
    epoch_seconds: float = 0.0
    extras: dict[str, Any] = field(default_factory=dict)
    best_value: float = -math.inf
    best_epoch: int = 0
    start_loss: float | None = None
    """Of the first step, before anything has changed; None in a checkpoint that was made before it was kept."""
    epochs_above: int = 0
    """How many epochs in a row, up to the last, had a mean loss above `ABOVE` times the start's."""
    lowest_loss: float = math.inf
    """The lowest mean loss of an epoch after the first."""
    step: int = 0
    """Steps done, in all epochs."""
    validated_step: int | None = None
    """The step after which validation came last."""
    best_step: int = 0
    best_measured: float = -math.inf
    smoothed: float | None = None

    def check(self) -> None:
        """Refuse what no training has written, with a TypeError."""
        whole = [self.epoch, self.batch, self.triples, self.best_epoch, self.epochs_above, self.step, self.best_step]
        whole += [] if self.validated_step is None else [self.validated_step]
        numbers = [self.loss_sum, self.epoch_seconds, self.best_value, self.lowest_loss, self.best_measured]
        numbers += [number for number in (self.start_loss, self.smoothed) if number is not None]
        fine = all(type(number) is int and number >= 0 for number in whole)
        if not (fine and all(type(number) in (int, float) for number in numbers) and isinstance(self.extras, dict)):
            raise TypeError("its progress is damaged")

    @property
    def start_level(self) -> float:
        """The start's loss; of a coin's throw at least, which trained tables that are trained on begin below."""
        return math.inf if self.start_loss is None else max(self.start_loss, math.log(2))

    def after_epoch(self, stopping: EarlyStopping) -> Progress:
        """The next epoch's beginning."""
        loss = self.loss_sum / max(self.triples, 1)
        following = Progress(
            self.epoch + 1,
            start_loss=self.start_loss,
            epochs_above=self.epochs_above + 1 if loss > ABOVE * self.start_level else 0,
            lowest_loss=self.lowest_loss if self.epoch == 1 else min(self.lowest_loss, loss),
            step=self.step,
            validated_step=self.validated_step,
        )
        following.remember(stopping)
        return following

    def stopping(self, settings: GraphMethod) -> EarlyStopping:
        """Patience as it stands here."""
        found = EarlyStopping.of(settings)
        for name in REMEMBERED:
            setattr(found, name, getattr(self, name))
        return found

    def remember(self, stopping: EarlyStopping) -> None:
        """What is best so far."""
        for name in REMEMBERED:
            setattr(self, name, getattr(stopping, name))

    def validation_is_due(self, settings: GraphMethod) -> bool:
        """After the first and the last epoch, and where enough steps have passed since the last time."""
        if self.validated_step is None or self.epoch == settings.epochs:
            return True
        return self.step - self.validated_step >= settings.validation_steps


@dataclass
class Trainer:
    """Trains a method, keeps its best epoch, and can go on where it was stopped."""

    method: GraphMethod
    validate: Validate | None = None
    """A validation number for the current epoch; None trains all epochs and keeps the last."""
    on_epoch: Callable[[EpochReport], None] = lambda _: None
    checkpoints: CheckpointFolder | None = None
    identity: dict[str, Any] = field(default_factory=dict)
    """What a checkpoint must have been made with (data fingerprint, settings) to be taken up again."""
    stop_requested: Callable[[], bool] = lambda: False
    checkpoint_seconds: float = CHECKPOINT_SECONDS
    start: Start | None = None
    """What training begins with; without it, random numbers."""
    keep_last: bool = False
    """Whether all epochs are trained and the last is kept, instead of the best on validation."""
    together: Together = ONE_PROCESS
    """The processes that train other parts of the same tables, step by step with this one; one of them leads."""
    finish: bool = False
    """Whether nothing is trained on: the best epoch of the checkpoint is kept."""
    _gave_back_at: float = field(default=-math.inf, init=False, repr=False)
    _refreshed: int = field(default=0, init=False, repr=False)
    """The epoch that the method has been refreshed for already."""

    def run(self, checkpoint: Checkpoint | None = None) -> EarlyStopping:
        """Train to the end, from the beginning or a checkpoint.  The method then holds its best epoch."""
        with computing():
            return self._run(checkpoint)

    def _run(self, checkpoint: Checkpoint | None) -> EarlyStopping:
        method = settings = self.method
        start = self.start
        tables = Tables.start(
            method, start.table if start else None, split_columns(settings.embedding_size, self.together.peers)
        )
        if start:
            tables.load_parameters(start.parameters)
            if not tables.columns.alone:  # it is of all users and columns, and needed no more
                self.start = start = replace(start, table=start.table.new_empty(0))
        self._adam = TiledAdam(tables)
        self._best: dict[str, Tensor] = {}
        self._saved_at = time.monotonic()
        at = self._resume(checkpoint) if checkpoint else Progress(start.epoch, step=start.step) if start else Progress()
        stopping = at.stopping(settings)
        if start:
            stopping.patience = start.patience(settings)
        early = self.validate is not None and not self.keep_last
        if start and start.measured and early and not checkpoint:
            self._measure_start(at, stopping)
        last = at.epoch - 1 if self.finish else settings.epochs
        while at.epoch <= last and not (early and stopping.exhausted(at.epoch - 1, at.step)):
            self._train_epoch(at)
            began = time.perf_counter()
            valid = self._validate(at)
            better = bool(valid) and stopping.improved(at.epoch, valid[MONITOR], at.step)
            if better or not self.validate or self.keep_last:
                self._best = {}  # let the old best go first: two at once would be a table more
                with lasting():
                    stopping.best_epoch, self._best = at.epoch, tables.snapshot()
            seconds = at.epoch_seconds + time.perf_counter() - began
            loss = at.loss_sum / max(at.triples, 1)
            changes = settings.warmup_steps > 1 or settings.learning_rate_schedule != "constant"
            rate = learning_rate_at(at.step, settings) if changes else None
            self.on_epoch(EpochReport(at.epoch, loss, seconds, valid, at.extras, stopping.best_epoch, rate))
            at = at.after_epoch(stopping)
            if at.epochs_above >= LONG:
                raise self._diverged(f"was {loss:.4g} in epoch {at.epoch - 1}, the {LONG}th in a row far", at)
            self._maybe_save(at)
        self._check_end(at)
        tables.restore(self._best)
        self._best = {}  # with Adam's moments three tables less, just before the vectors are made
        del self._adam
        leads = tables.columns.leads
        tables.collect()
        if leads:
            method.finish()
        return stopping

    def _measure_start(self, at: Progress, stopping: EarlyStopping) -> None:
        """What training begins with is the first to be beaten."""
        at.extras, self._refreshed = self.method.refresh(at.epoch), at.epoch
        valid = self._validate(at)
        at.validated_step = None  # the first epoch is validated as ever
        stopping.improved(at.epoch - 1, valid[MONITOR], at.step)
        at.remember(stopping)
        with lasting():
            self._best = self.method.tables.snapshot()

    def _train_epoch(self, at: Progress) -> None:
        began, before = time.perf_counter(), at.epoch_seconds
        if at.batch == 0 and self._refreshed != at.epoch:
            at.extras = self.method.refresh(at.epoch)
        for batch in self.method.batches(at.epoch, at.batch):
            loss = self._step(batch, learning_rate_at(at.step + 1, self.method)).item()
            if not math.isfinite(loss):
                raise DivergedError(
                    f"the loss became {loss} in epoch {at.epoch} with learning_rate "
                    f"{self.method.learning_rate:g}; train with a smaller learning_rate or a larger l2"
                )
            if at.start_loss is None and at.epoch == self._first_epoch and at.batch == 0:
                at.start_loss = loss
            at.loss_sum += loss * len(batch)
            at.batch += 1
            at.step += 1
            at.triples += len(batch)
            at.epoch_seconds = before + time.perf_counter() - began
            self._maybe_save(at)

    @property
    def _first_epoch(self) -> int:
        return self.start.epoch if self.start else 1

    def _check_end(self, at: Progress) -> None:
        """A training too short to be above the start for long, but far above it all along, has diverged too."""
        limit = FAR_ABOVE * at.start_level
        if at.lowest_loss <= limit:
            return
        # A single epoch may be a single step, whose loss is the start's: what the step did is seen afterwards.
        first = next(iter(self.method.batches(1)))
        with torch.no_grad():
            loss = self._loss(first, self.method.tables.forward(first)).item()
        if not loss <= limit:
            raise self._diverged(f"was {loss:.4g} at the end, after epoch {at.epoch - 1}, far", at)

    def _diverged(self, found: str, at: Progress) -> DivergedError:
        return DivergedError(
            f"training diverged: the loss {found} above the {at.start_loss:.4g} it began with, with learning_rate "
            f"{self.method.learning_rate:g}; train with a smaller learning_rate"
        )

    def _step(self, batch: Batch, learning_rate: float | None = None) -> Tensor:
        if time.monotonic() - self._gave_back_at >= GIVE_BACK_SECONDS:
            give_back_memory()
            self._gave_back_at = time.monotonic()
        rows = self.method.tables.forward(batch)
        loss = self._loss(batch, rows)
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        self._adam.step(rows, self.method.learning_rate if learning_rate is None else learning_rate)
        return loss.detach()

    def _loss(self, batch: Batch, rows: Rows) -> Tensor:
        """The method's; of somebody's first try it is often one number per triple."""
        loss = self.method.loss(batch, rows)
        if not isinstance(loss, Tensor) or loss.ndim:
            made = f"a tensor of shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else type(loss).__name__
            told = f"the loss of method {self.method.name} must be a tensor of one number, got {made}"
            raise InputError(f"{told}; return a mean or a sum")
        return loss

    def _validate(self, at: Progress) -> dict[str, float]:
        if self.validate is None or not at.validation_is_due(self.method):
            return {}
        at.validated_step = at.step
        validate = partial(self.validate, self.method)
        self.method.tables.update_embeddings()
        found = self.together.share(validate)
        self.method.tables.drop_embeddings()
        return found

    def _maybe_save(self, at: Progress) -> None:
        due = self.checkpoints is not None and time.monotonic() - self._saved_at >= self.checkpoint_seconds
        wish = self.together.agree(STOP if self.stop_requested() else SAVE if due else GO_ON)
        if wish != GO_ON and (self.checkpoints or not self.method.tables.columns.alone):
            tensors = self._whole_state()
            if self.checkpoints:
                self.checkpoints.save(Checkpoint(tensors, {"at": asdict(at), "identity": self.identity}))
            self._saved_at = time.monotonic()
        if wish == STOP:
            raise Interrupted

    def _whole_state(self) -> dict[str, Tensor]:
        """All columns of everything, in the process that leads: a checkpoint does not know how many trained."""
        tables = self.method.tables
        states = {"method": tables.snapshot(), "best": self._best}
        found = {
            f"{part}.{name}": tables.columns.to_leader(tensor) if tables.is_cut(name) else tensor
            for part, state in states.items()
            for name, tensor in state.items()
        }
        return found | {f"adam.{name}": tensor for name, tensor in self._adam.whole_state().items()}

    def _own_part(self, name: str, tensor: Tensor) -> Tensor:
        """What this process needs of a checkpoint's tensor."""
        part, _, rest = name.partition(".")
        tables = self.method.tables
        if tables.columns.alone:
            return tensor
        if part == "adam":
            return self._adam.own_part(rest, tensor).clone()
        return tables.columns.cut(tensor).clone() if tables.is_cut(rest) else tensor

    def check(self, checkpoint: Checkpoint) -> None:
        """Refuse a checkpoint that was made with something else, naming the difference."""
        made_with = dict(checkpoint.progress["identity"])
        for name, value in self.identity.items():
            found = made_with.get(name)
            if name == "settings" and isinstance(found, dict):
                found = with_earlier_defaults(type(self.method), found)
            if found == value:
                continue
            if isinstance(found, dict) and isinstance(value, dict):
                changed = [key for key in value if found.get(key) != value[key]]
                told = ", ".join(f"{key} was {found.get(key)!r}, is now {value[key]!r}" for key in changed)
            else:
                told = f"it was {found!r}, is now {value!r}"
            raise InputError(
                f"the checkpoint was made with another {name} ({told}); "
                "resume with the same call or train into a new folder"
            )

    def _resume(self, checkpoint: Checkpoint) -> Progress:
        self.check(checkpoint)
        if self.finish and not checkpoint.part("best"):
            raise InputError("training was stopped in its first epoch and has none to keep; continue with --resume")
        try:
            at = Progress(**{"best_measured": checkpoint.progress["at"]["best_value"]} | checkpoint.progress["at"])
            at.check()
            tensors = self.together.from_leader(checkpoint.tensors)
            own = Checkpoint({name: self._own_part(name, tensor) for name, tensor in tensors}, checkpoint.progress)
            self._best = own.part("best")
            if self._best or at.best_epoch or at.epoch > self.method.epochs:
                self.method.tables.restore(self._best)  # as it will be at the end: better refused now than then
            self.method.tables.restore(own.part("method"))
            self._adam.load_own_parts(own.part("adam"))
            return at
        except LostProcessError:
            raise  # no fault of the checkpoint's
        except (KeyError, RuntimeError, TypeError, ValueError) as error:
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            raise InputError(
                f"the checkpoint does not fit this training ({reason}); remove the folder checkpoint to start afresh"
            ) from None
