"""How far a training is: its learning rate there, when to stop it, which epoch to keep, and its checkpoints."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from dpaa._io import check_regular, own_folder, remove_folder, write_file
from dpaa.errors import InputError, reason
from dpaa.methods.base import Method
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.tables import Tables

DIVERGED_EPOCHS = 10
DIVERGED_FACTOR, SHORT_DIVERGED_FACTOR = 3.0, 30.0
"""Times the first loss: training has diverged when ten epochs in a row, or all of a shorter training, are above.

With learning rates up to 0.1 no method has three epochs in a row above 3 times its first loss; with learning rates of
10 and more the last ten of 60 epochs of every method are above 25 times.
"""
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
        """From the hyperparameters of a method; numbers of steps that are `auto` grow as the learning rate falls."""
        auto = max(1, round(AUTO_DISTANCE / method.learning_rate))
        patience, minimum = (
            auto if steps == "auto" else steps for steps in (method.patience_steps, method.minimum_steps)
        )
        return cls(method.patience, patience, minimum)

    def improved(self, epoch: int, value: float, step: int = 0) -> bool:
        """Whether this epoch is the best so far, which is then kept."""
        if value <= self.best.value:
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


MOMENTS = ("mean", "square")
"""Of Adam: tables like layer 0."""


@dataclass(frozen=True, eq=False)
class Start:
    """Tables that were trained before, and how far the schedule has come.

    Parameters
    ----------
    table : (n_nodes, d) layer 0, users then items
    parameters : what a method trains besides the table, as far as it is known
    epoch : the first to be trained
    step : steps that count as done: the learning rate continues from there
    best_epoch : epoch of the earlier training in which the table was best
    patience_share : of the method's epochs of patience
    history : lines of the epochs before
    origin : where the tables come from, for the manifest
    """

    table: Tensor
    parameters: dict[str, Tensor] = field(default_factory=dict)
    epoch: int = 1
    step: int = 0
    best_epoch: int = 0
    patience_share: float = 1.0
    history: tuple[dict[str, Any], ...] = ()
    origin: dict[str, Any] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Digest of all numbers: a checkpoint belongs to one start."""
        # Names too, and sorted: two parameters of one shape must not be exchangeable.
        content = hashlib.sha256(f"{self.epoch} {self.step} {sorted(self.parameters)}".encode())
        for tensor in (self.table, *(self.parameters[name] for name in sorted(self.parameters))):
            content.update(tensor.detach().cpu().contiguous().numpy().tobytes())
        return content.hexdigest()


@dataclass(frozen=True)
class Checkpoint:
    """State of a stopped training.

    Parameters
    ----------
    tensors : tables, the best epoch's, and Adam's moments, as `part.name`
    at : progress within the training (`Progress` as JSON)
    identity : what the training was started with; another training refuses the checkpoint
    """

    tensors: dict[str, Tensor]
    at: dict[str, Any]
    identity: dict[str, Any] = field(default_factory=dict)

    @property
    def epoch(self) -> int:
        """The epoch in which training was stopped."""
        return int(self.at["epoch"])


class CheckpointFolder:
    """`checkpoint/` of a run folder, which holds one file; it is replaced whole or not at all.

    Parameters
    ----------
    folder : of the checkpoint
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "state.safetensors"

    def save(self, checkpoint: Checkpoint) -> None:
        """Replace the checkpoint, whole or not at all.

        Parameters
        ----------
        checkpoint : the new one
        """
        tensors = {name: tensor.contiguous().cpu() for name, tensor in checkpoint.tensors.items()}
        about = {"progress": json.dumps({"at": checkpoint.at, "identity": checkpoint.identity})}
        remedy = "make room and continue with --resume"
        own_folder(self.folder, remedy)
        write_file(self.file, lambda file: save_file(tensors, file, metadata=about), remedy)

    def load(self) -> Checkpoint | None:
        """Read the last checkpoint.

        Returns
        -------
        the checkpoint, None where there is none
        """
        if not self.file.exists():
            return None
        # Before safetensors maps it: a pipe or a device under the name would hang or never end.
        check_regular(self.file)
        try:
            with safe_open(self.file, framework="pt") as opened:
                about = json.loads((opened.metadata() or {})["progress"])
                int(about["at"]["epoch"])
                tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118  # not a dict
                return Checkpoint(tensors, about["at"], dict(about["identity"]))
        except (SafetensorError, KeyError, ValueError, TypeError, RecursionError, OverflowError, OSError) as error:
            raise InputError(
                f"{self.file} is not a readable checkpoint ({reason(error)}); remove {self.folder} to start afresh"
            ) from None

    def remove(self) -> None:
        """Remove the checkpoint of a training that has ended."""
        remove_folder(self.folder)


def _is_cut(name: str, tables: Tables) -> bool:
    """Whether a tensor of a checkpoint is a table whose columns may be in several processes."""
    part, _, rest = name.partition(".")
    return rest in MOMENTS if part == "adam" else tables.is_cut(rest)


def whole_state(tables: Tables, best: dict[str, Tensor], adam: dict[str, Tensor]) -> dict[str, Tensor]:
    """Collect all columns of everything at rank 0: a checkpoint does not depend on the number of processes.

    Parameters
    ----------
    tables : as they are now
    best, adam : snapshot of the best epoch, and state of Adam

    Returns
    -------
    tensors of a `Checkpoint`
    """
    parts = {"method": tables.snapshot(), "best": best, "adam": adam}
    tensors = {f"{part}.{name}": tensor for part, state in parts.items() for name, tensor in state.items()}
    return {n: tables.columns.to_leader(one) if _is_cut(n, tables) else one for n, one in tensors.items()}


def resume(
    checkpoint: Checkpoint, identity: dict[str, Any], tables: Tables, load_adam: Callable[[dict[str, Tensor]], None]
) -> tuple[Progress, dict[str, Tensor]]:
    """Restore tables and Adam's state.

    Parameters
    ----------
    checkpoint : of the same training
    identity : what this training was started with
    tables : overwritten
    load_adam : takes Adam's state

    Returns
    -------
    how far the training was, and the snapshot of its best epoch

    Raises
    ------
    InputError : if the checkpoint belongs to another training
    """
    for name in checkpoint.identity.keys() | identity.keys():
        before, now = checkpoint.identity.get(name), identity.get(name)
        if before != now:
            raise InputError(
                f"the checkpoint was made with another {name} ({before!r}, now {now!r}); resume with the same "
                "command or train into a new folder"
            )
    parts: dict[str, dict[str, Tensor]] = {"method": {}, "best": {}, "adam": {}}
    try:
        at = TypeAdapter(Progress).validate_python(checkpoint.at)
        for name, tensor in checkpoint.tensors.items():
            part, _, rest = name.partition(".")
            whole = tables.columns.alone or not _is_cut(name, tables)
            parts[part][rest] = tensor if whole else tables.columns.cut(tensor).clone()
        if at.best.epoch or at.epoch > tables.method.epochs:
            tables.restore(parts["best"])  # as at the end: better refused now than then
        tables.restore(parts["method"])
        load_adam(parts["adam"])
    except (KeyError, RuntimeError, TypeError, ValueError, ValidationError) as error:
        why = f"{type(error).__name__}: {error}".splitlines()[0]
        raise InputError(
            f"the checkpoint does not fit this training ({why}); remove the folder checkpoint to start afresh"
        ) from None
    return at, parts["best"]
