"""How a training looks while it runs: a line that stays in its place on a terminal, a line now and then otherwise."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from dpaa._text import counted
from dpaa.cli.console import err, print_notes
from dpaa.runs.progress import TrainingProgress, duration

if TYPE_CHECKING:
    from dpaa.methods.base import Method
    from dpaa.runs.fit import Preview
    from dpaa.training.trainer import EpochReport

PLAIN_SECONDS = 10.0


class EpochDisplay:
    """Which part is trained, loss, validation, pace, and the time left: at least and at most."""

    def __init__(self, method: Method) -> None:
        self._progress = TrainingProgress.of(method)
        self._method = method
        self._printed = time.monotonic()
        self._told = 0
        self._bar = err.bar(self._line) if err.is_terminal and self._progress.epochs else None

    def _line(self, width: int) -> str:
        return self._progress.fitted(width)

    def __enter__(self) -> None:
        if self._bar:
            self._bar.start()

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._bar.stop()

    def part(self, label: str, method: Method) -> None:
        """A training that is one part of the whole is about to begin."""
        self._begin(method, label)

    def start(self, method: Method, notes: list[str]) -> None:
        """Say what is about to happen."""
        print_notes(notes)
        self._begin(method, self._progress.part if method is self._method else "")
        if self._progress.epochs:
            err.print(f"training {method.name} on {method.graph}")

    def _begin(self, method: Method, label: str) -> None:
        self._method, self._progress = method, TrainingProgress.of(method, label)
        self._printed, self._told = time.monotonic(), 0

    def preview(self, preview: Preview) -> None:
        """What it will cost, before it costs it."""
        worst = preview.seconds_per_epoch * preview.epochs
        others = ""
        if preview.processes > 1:
            more = counted(preview.processes - 1, "more process", "more processes")
            others = f" (with {more} of {preview.others_bytes / 1e6:,.0f} MB)"
        err.print(
            f"about {preview.memory_bytes / 1e6:,.0f} MB{others} and {preview.seconds_per_epoch:.2f} s an epoch; "
            f"at most {duration(worst)} for {preview.epochs:,} epochs, less with early stopping"
        )

    def epoch(self, report: EpochReport) -> None:
        """An epoch has ended."""
        self._progress.tell(report)
        self._told += 1
        left = self._progress.left()
        last = left is not None and left[0] <= 0
        if self._bar:
            return
        if self._told in (1, 2, 5) or time.monotonic() - self._printed >= PLAIN_SECONDS or last:
            self._printed = time.monotonic()
            part = f"{self._progress.title}: " if self._progress.part else ""
            err.print(part + self._progress.line())
