"""How a training looks while it runs: a line that stays in its place on a terminal, a line now and then otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dpaa.cli.console import err, print_notes
from dpaa.runs.progress import TrainingDisplay, TrainingProgress

if TYPE_CHECKING:
    from dpaa.methods.base import Method
    from dpaa.runs.progress import Callbacks


class EpochDisplay(TrainingDisplay):
    """Part, loss, validation, pace, and the time left: at least and at most."""

    def __init__(self, method: Method) -> None:
        super().__init__()
        self.progress = TrainingProgress.of(method)
        self._bar = err.bar(self._line) if err.is_terminal and self.progress.epochs else None

    def _line(self, width: int) -> str:
        assert self.progress is not None
        return self.progress.fitted(width)

    def __enter__(self) -> None:
        if self._bar:
            self._bar.start()

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._bar.stop()

    def start(self, method: Method, notes: list[str]) -> None:
        """Print the notes and what is about to be trained."""
        print_notes(notes)
        super().start(method, notes)
        if self.progress and self.progress.epochs:
            err.print(f"training {method.name} on {method.graph}")

    def show(self, progress: TrainingProgress) -> None:
        """Print a line, unless the bar shows it."""
        if not self._bar:
            err.print(f"{progress.title}: {progress.line()}" if progress.part else progress.line())


@contextmanager
def watched_training(method: Method, **others: Any) -> Iterator[Callbacks]:
    """Show a training of a command; yields its callbacks, `others` among them."""
    display = EpochDisplay(method)
    with display:
        yield display.callbacks(say=err.print, **others)
