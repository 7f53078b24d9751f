"""The training loop: batches, Adam, validation, early stopping, checkpoints."""

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor

from dpaa._machine import computing, give_back_memory, lasting
from dpaa.errors import DivergedError, InputError
from dpaa.graph.kernels import Adam
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.tables import Batch, Rows, Tables
from dpaa.training import distributed
from dpaa.training._checkpoint import MOMENTS, Checkpoint, CheckpointFolder, Start, resume, whole_state
from dpaa.training._state import Best, Callbacks, EarlyStopping, EpochReport, Progress, learning_rate_at
from dpaa.training.distributed import split_columns

__all__ = ["MONITOR", "EpochReport", "Interrupted", "TiledAdam", "Trainer", "learning_rate_at"]

Validate = Callable[[GraphMethod], dict[str, float]]
DIVERGED_EPOCHS, SHORT_DIVERGED_FACTOR = 10, 30.0
"""Times the first loss: training has diverged when ten epochs in a row, or all of a shorter training, are above.

With learning rates up to 0.1 no method has three epochs in a row above 3 times its first loss; with learning rates of
10 and more the last ten of 60 epochs of every method are above 25 times.
"""
MONITOR = "recall@20"
GIVE_BACK_SECONDS = 1.0
"""Tensors of a step have the size of its batch's rows, never the same: the holes between them grow for minutes."""


class Interrupted(Exception):  # noqa: N818  # it is not an error: the user wanted it
    """Training was stopped on request and has left a checkpoint."""


class TiledAdam(Adam):
    """Adam over the tiles of the ego table, each updated right after its gradient while it is still in cache.

    Parameters
    ----------
    tables : whose tiles and further parameters are updated
    """

    def __init__(self, tables: Tables) -> None:
        super().__init__([*tables.ego.tiles, *tables.parameters.values()], tables.method.weight_decay)
        self._tables = tables

    def step(self, rows: Rows, learning_rate: float) -> None:
        """Update everything after `loss.backward()`."""
        tables, n_tiles = self._tables, len(self._tables.ego.tiles)
        tables.propagation.workers.map(
            lambda tile: self.update(tile, tables.tile_gradient(rows, tile), learning_rate), n_tiles
        )
        for index, parameter in enumerate(tables.parameters.values(), start=n_tiles):
            if parameter.grad is not None:
                self.update(index, parameter.grad, learning_rate)
                parameter.grad = None

    def state(self) -> dict[str, Tensor]:
        """Moments as tables of all columns that are held here, `mean` and `square`; then those of the parameters."""
        own, n_tiles = super().state(), len(self._tables.ego.tiles)
        state = {part: torch.cat([own[f"{part}.{tile}"] for tile in range(n_tiles)], dim=1) for part in MOMENTS}
        state["steps"] = own["steps.0"]
        for index, name in enumerate(self._tables.parameters, start=n_tiles):
            state |= {f"{part}.{name}": own[f"{part}.{index}"] for part in (*MOMENTS, "steps")}
        return state

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Restore what `state` returned."""
        tiles = self._tables.ego.columns
        own = {f"steps.{index}": state["steps"] for index in range(len(tiles))}
        own |= {f"{part}.{index}": state[part][:, tile] for part in MOMENTS for index, tile in enumerate(tiles)}
        for index, name in enumerate(self._tables.parameters, start=len(tiles)):
            own |= {f"{part}.{index}": state[f"{part}.{name}"] for part in (*MOMENTS, "steps")}
        with torch.no_grad():
            for name, tensor in super().state().items():
                tensor.copy_(own[name])


@dataclass
class Trainer:
    """Trains a method, keeps its best epoch, and can resume where it was stopped.

    Parameters
    ----------
    method : attached to a graph
    validate : computes validation metrics of the current epoch; None trains all epochs and keeps the last
    callbacks : called after every epoch, and asked after every step or epoch whether to end
    checkpoints : where checkpoints go; None writes none
    identity : what a checkpoint must have been made with (dataset, hyperparameters) to be resumed from
    start : tables that training starts from; default: random numbers
    keep_last : train all epochs and keep the last, instead of the best on validation
    """

    method: GraphMethod
    validate: Validate | None = None
    callbacks: Callbacks = field(default_factory=Callbacks)
    checkpoints: CheckpointFolder | None = None
    identity: dict[str, Any] = field(default_factory=dict)
    start: Start | None = None
    keep_last: bool = False

    @computing()
    def run(self, checkpoint: Checkpoint | None = None) -> Best:
        """Train to the end, from the start or a checkpoint.

        Parameters
        ----------
        checkpoint : of the same training

        Returns
        -------
        the best epoch, which the method then holds
        """
        method, start = self.method, self.start
        self._columns = split_columns(method.embedding_size, distributed.peers())
        tables = Tables.start(method, start.table if start else None, self._columns)
        if start:
            tables.load_parameters(start.parameters)
        self._adam = TiledAdam(tables)
        self._best: dict[str, Tensor] = {}
        self.ended_early = False  # by `finish_requested`
        self._saved_at, self._gave_back_at = time.monotonic(), -math.inf
        self._first_epoch = start.epoch if start else 1
        at = self._resume(checkpoint) if checkpoint else Progress(self._first_epoch, step=start.step if start else 0)
        stopping = EarlyStopping.of(method)
        stopping.best = at.best
        if start:
            stopping.patience = max(1, math.ceil(start.patience_share * method.patience))
        early = self.validate is not None and not self.keep_last
        if start and early and not checkpoint:
            self._validate_start(at, stopping)
        while at.epoch <= method.epochs and not (early and stopping.exhausted(at.epoch - 1, at.step)):
            self._train_epoch(at)
            began = time.perf_counter()
            valid = self._validate(at)
            better = bool(valid) and stopping.improved(at.epoch, valid[MONITOR], at.step)
            if better or not early:
                self._best = {}  # free the old one first: two at once would be a table more
                with lasting():
                    at.best.epoch, self._best = at.epoch, tables.snapshot()
            seconds = at.epoch_seconds + time.perf_counter() - began
            constant = method.warmup_steps <= 1 and method.learning_rate_schedule == "constant"
            rate = None if constant else learning_rate_at(at.step, method)
            self.callbacks.on_epoch(
                EpochReport(at.epoch, at.loss, seconds, valid, at.extras or {}, at.best.epoch, rate)
            )
            loss, at = at.loss, at.next_epoch()
            if at.epochs_above >= DIVERGED_EPOCHS:
                raise self._diverged(loss, at)
            self._maybe_save(at)
            self.ended_early = self._agreed(self.callbacks.finish_requested())[0]
            if self.ended_early:
                break
        if at.epoch > 2 and at.lowest_loss > SHORT_DIVERGED_FACTOR * at.start_level:
            raise self._diverged(at.lowest_loss, at)
        tables.restore(self._best)
        self._best = {}  # with Adam's moments three tables less, just before the vectors are computed
        del self._adam
        tables.collect()
        # The others have some columns only, and nothing to score with.
        if self._columns.leads:
            method.finish()
        return at.best

    def _validate_start(self, at: Progress, stopping: EarlyStopping) -> None:
        """Validate the tables that training starts from: they are kept where no epoch is better."""
        at.extras = self.method.refresh(at.epoch)
        stopping.improved(at.epoch - 1, self._validate(at)[MONITOR], at.step)
        at.validated_step = None  # the first epoch is validated as in any training
        with lasting():
            self._best = self.method.tables.snapshot()

    def _train_epoch(self, at: Progress) -> None:
        began, before = time.perf_counter(), at.epoch_seconds
        if at.extras is None:
            at.extras = self.method.refresh(at.epoch)
        for batch in self.method.batches(at.epoch, at.batch):
            if time.monotonic() - self._gave_back_at >= GIVE_BACK_SECONDS:
                give_back_memory()
                self._gave_back_at = time.monotonic()
            # `item` waits for the device, in every step: a loss that is no number ends training where it occurs.
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

    def _step(self, batch: Batch, learning_rate: float) -> Tensor:
        rows = self.method.tables.forward(batch)
        loss = self.method.loss(batch, rows)
        if not isinstance(loss, Tensor) or loss.ndim:  # of a first try it is often one number per triple
            got = f"a tensor of shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else type(loss).__name__
            must = f"the loss of method {self.method.name} must be a tensor of one number"
            raise InputError(f"{must}, got {got}; return a mean or a sum")
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        self._adam.step(rows, learning_rate)
        return loss.detach()

    def _diverged(self, loss: float, at: Progress) -> DivergedError:
        return DivergedError(
            f"training diverged: the loss was {loss:.4g} after epoch {at.epoch - 1}, far above the {at.start_loss:.4g} "
            f"it began with, with learning_rate {self.method.learning_rate:g}; train with a smaller learning_rate"
        )

    def _validate(self, at: Progress) -> dict[str, float]:
        """Validate after the first and the last epoch, and where enough steps have passed since the last time."""
        waited = math.inf if at.validated_step is None else at.step - at.validated_step
        due = waited >= self.method.validation_steps or at.epoch == self.method.epochs
        if self.validate is None or not due:
            return {}
        at.validated_step = at.step
        self.method.tables.update_embeddings()
        valid = self.validate(self.method) if self._columns.leads else {}
        self.method.tables.drop_embeddings()
        return valid if self._columns.alone else distributed.peers().broadcast(valid)

    def _agreed(self, *wishes: bool) -> tuple[bool, ...]:
        """Return the wishes of rank 0 in every process."""
        if self._columns.alone:
            return wishes
        return tuple(map(bool, distributed.peers().everyone(torch.tensor(wishes))[0]))

    def _maybe_save(self, at: Progress) -> None:
        stop = self.callbacks.stop_requested()
        due = stop or time.monotonic() - self._saved_at >= self.callbacks.checkpoint_seconds
        # Agreed, since clocks and signals differ: processes that decide alone would wait for one another for
        # ever.
        stop, save = self._agreed(stop, due and self.checkpoints is not None)
        if save:
            tensors = whole_state(self.method.tables, self._best, self._adam.state())
            if self.checkpoints:
                self.checkpoints.save(Checkpoint(tensors, asdict(at), self.identity))
            self._saved_at = time.monotonic()
        if stop:
            raise Interrupted

    def _resume(self, checkpoint: Checkpoint) -> Progress:
        at, self._best = resume(checkpoint, self.identity, self.method.tables, self._adam.load_state)
        return at
