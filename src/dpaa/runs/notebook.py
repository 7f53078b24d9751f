"""A training in a notebook: a bar below the cell, and one line of it when it is over; elsewhere lines now and then."""

from __future__ import annotations

import sys
import time
from typing import Any

from dpaa._html import html_progress
from dpaa.errors import InputError
from dpaa.methods.base import Method
from dpaa.runs.callbacks import Callbacks
from dpaa.runs.progress import TrainingProgress
from dpaa.training.trainer import EpochReport

EVERY_SECONDS = 0.2
PLAIN_SECONDS = 10.0


def in_notebook() -> bool:
    """Whether this is a kernel that shows HTML; IPython is asked only where it is at work already."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


def watched(progress: bool | None) -> Callbacks:
    """Who shows a fit: `None` in a notebook alone, True everywhere, False nobody."""
    if progress not in (None, True, False):
        raise InputError(f"progress must be True, False or None (in notebooks only), got {progress!r}")
    shows = in_notebook() if progress is None else progress
    if not shows:
        return Callbacks()
    display: FitDisplay = NotebookDisplay() if in_notebook() else FitDisplay()
    return Callbacks(on_start=display.start, on_part=display.part, on_epoch=display.epoch)


class FitDisplay:
    """Lines on standard error."""

    def __init__(self) -> None:
        self._method: Method | None = None
        self._progress: TrainingProgress | None = None
        self._shown = 0.0

    def part(self, label: str, method: Method) -> None:
        """One part of the whole is about to be trained."""
        self._method, self._progress = method, TrainingProgress.of(method, label)

    def start(self, method: Method, notes: list[str]) -> None:
        """A training is about to begin."""
        del notes
        if method is not self._method:
            self.part("", method)
        self._shown = 0.0

    def epoch(self, report: EpochReport) -> None:
        """An epoch has ended."""
        assert self._progress is not None
        self._progress.tell(report)
        left = self._progress.left()
        last = left is not None and left[0] <= 0
        if last or time.monotonic() - self._shown >= self.every:
            self._shown = time.monotonic()
            self.show(self._progress)

    every = PLAIN_SECONDS

    def show(self, progress: TrainingProgress) -> None:
        """Where it stands."""
        sys.stderr.write(f"{progress.title}: {progress.line()}\n")


class NotebookDisplay(FitDisplay):
    """A bar that changes in its place."""

    every = EVERY_SECONDS

    def __init__(self) -> None:
        super().__init__()
        self._handle: Any = None

    def part(self, label: str, method: Method) -> None:
        """Every part gets a bar of its own."""
        super().part(label, method)
        self._handle = None

    def show(self, progress: TrainingProgress) -> None:
        """Change the bar."""
        shown = _Shown(html_progress(progress.done, progress.epochs, f"{progress.title}: {progress.line()}"))
        if self._handle is None:
            self._handle = sys.modules["IPython"].display.display(shown, display_id=True)
        else:
            self._handle.update(shown)


class _Shown:
    def __init__(self, html: str) -> None:
        self._html = html

    def _repr_html_(self) -> str:
        return self._html
