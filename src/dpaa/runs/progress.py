"""How a training is followed: callbacks, and a display on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from dpaa._text import on_one_line, printable
from dpaa.methods.base import Method
from dpaa.methods.graph_method import GraphMethod
from dpaa.training.trainer import CHECKPOINT_SECONDS, MONITOR, EpochReport

LINE_SECONDS = 10.0
"""Between two lines where there is no terminal."""
FIRST_EPOCHS = (1, 2, 5)
"""Epochs that get a line at once."""


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
    checkpoint_seconds: float = CHECKPOINT_SECONDS


class TrainingDisplay:
    """A bar on a terminal; elsewhere lines, after the first epochs and then every ten seconds.

    Parameters
    ----------
    bar : rich's `Progress`; None prints lines
    """

    def __init__(self, bar: Any = None) -> None:
        self._bar = bar
        self._method: Method | None = None

    def start(self, method: Method, notes: list[str]) -> None:
        """Print the notes, and begin to show the training of a method."""
        for note in notes:
            self.say(f"note: {note}")
        self._method, self._epochs, self._valid = method, 0, ""
        self._began = self._shown = time.monotonic()
        if isinstance(method, GraphMethod):
            self.say(f"training {method.name} on {method.graph}")
            if self._bar:
                for task in self._bar.task_ids:
                    self._bar.remove_task(task)
                self._task = self._bar.add_task(method.name, total=method.epochs, numbers="")

    def epoch(self, report: EpochReport) -> None:
        """Show an epoch that has ended, if it is time to."""
        assert isinstance(self._method, GraphMethod)
        self._epochs += 1
        if report.valid:
            self._valid = f"  {MONITOR} {report.valid[MONITOR]:.4f} (best in epoch {report.best_epoch:,})"
        numbers = f"loss {report.loss:.4f}{self._valid}"
        now = time.monotonic()
        if self._bar:
            self._bar.update(self._task, completed=report.epoch, numbers=numbers)
        elif self._epochs in FIRST_EPOCHS or now - self._shown >= LINE_SECONDS or report.epoch == self._method.epochs:
            self._shown = now
            left = (self._method.epochs - report.epoch) * (now - self._began) / self._epochs
            ending = f"at most {left:.0f} s left" if left < 120 else f"at most {left / 60:.0f} min left"
            self.say(f"{on_one_line(self._method.name)}: epoch {report.epoch}  {numbers}  {ending}")

    def say(self, line: str) -> None:
        """Print a line; a standard error that takes no more is not worth a training."""
        with suppress(OSError):
            sys.stderr.write(f"{printable(line)}\n")


@contextmanager
def watched_training(method: Method, **others: Any) -> Iterator[Callbacks]:
    """Show a training on standard error.

    Parameters
    ----------
    method : what is trained
    others : further fields of the callbacks

    Returns
    -------
    a context with the callbacks
    """
    if not isinstance(method, GraphMethod) or not sys.stderr.isatty():
        display = TrainingDisplay()
        yield Callbacks(display.start, display.epoch, say=display.say, **others)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    shown = (TextColumn("{task.description}  {task.fields[numbers]}", markup=False), TimeRemainingColumn())
    with Progress(BarColumn(12), MofNCompleteColumn(), *shown, console=Console(stderr=True), transient=True) as bar:
        display = TrainingDisplay(bar)
        yield Callbacks(display.start, display.epoch, say=display.say, **others)
