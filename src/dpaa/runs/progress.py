"""Progress of a training: callbacks, and a display on standard error."""

import sys
import time
from contextlib import suppress
from typing import Any

from dpaa._text import on_one_line, printable
from dpaa.methods.base import Method
from dpaa.methods.graph_method import GraphMethod
from dpaa.training import MONITOR, Callbacks, EpochReport

__all__ = ["Callbacks", "TrainingDisplay", "watched_training"]
LINE_SECONDS = 10.0
"""Between two lines where there is no terminal."""
FIRST_EPOCHS = (1, 2, 5)
"""Epochs that get a line at once."""


class TrainingDisplay:
    """Lines on standard error: after the first epochs, then every ten seconds."""

    def start(self, method: Method, notes: list[str]) -> None:
        """Print the notes, and begin to show the training of a method."""
        for note in notes:
            self.say(f"note: {note}")
        self._method, self._epochs, self._valid = method, 0, ""
        self._began = self._shown = time.monotonic()
        if isinstance(method, GraphMethod):
            graph = method.graph
            sizes = f"{graph.n_users:,} users, {graph.n_items:,} items and {graph.n_edges:,} training pairs"
            self.say(f"training {method.name} on {sizes}")

    def epoch(self, report: EpochReport) -> None:
        """Show an epoch that has ended, if it is time to."""
        assert isinstance(self._method, GraphMethod)
        self._epochs += 1
        if report.valid:
            self._valid = f"  {MONITOR} {report.valid[MONITOR]:.4f} (best in epoch {report.best_epoch:,})"
        now = time.monotonic()
        if self._epochs in FIRST_EPOCHS or now - self._shown >= LINE_SECONDS or report.epoch == self._method.epochs:
            self._shown = now
            seconds = (self._method.epochs - report.epoch) * (now - self._began) / self._epochs
            ending = f"at most {seconds:.0f} s left" if seconds < 120 else f"at most {seconds / 60:.0f} min left"
            name = on_one_line(self._method.name)
            self.say(f"{name}: epoch {report.epoch}  loss {report.loss:.4f}{self._valid}  {ending}")

    def say(self, line: str) -> None:
        """Print a line; a standard error that takes no more is not worth a training."""
        with suppress(OSError):
            sys.stderr.write(f"{printable(line)}\n")


def watched_training(**others: Any) -> Callbacks:
    """Make callbacks that show trainings on standard error.

    Parameters
    ----------
    others : further fields of the callbacks

    Returns
    -------
    the callbacks
    """
    display = TrainingDisplay()
    return Callbacks(display.start, display.epoch, say=display.say, **others)
