"""How a training is followed: callbacks, the time left, and displays for logs and notebooks.

The time left is a range: from "no epoch is better any more", when patience ends the training, to "every epoch is
trained"; both by the pace of the last epochs.  Of a training that is one part of a whole, it is that of the part.
"""

from __future__ import annotations

import math
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dpaa._html import html_progress
from dpaa._text import on_one_line
from dpaa.errors import InputError
from dpaa.methods.base import Method
from dpaa.methods.graph_method import GraphMethod
from dpaa.training.stopping import EarlyStopping
from dpaa.training.together import ONE_PROCESS, Together
from dpaa.training.trainer import CHECKPOINT_SECONDS, MONITOR, EpochReport

PACE = 20
"""The last epochs by which the pace is measured."""
NARROWEST_BAR, WIDEST_BAR = 8, 24
SHORTEST_NAME = 8
GAP = "  "
PLAIN_SECONDS, NOTEBOOK_SECONDS = 10.0, 0.2
"""Between two updates of a log and of a notebook."""
FIRST_EPOCHS = (1, 2, 5)
"""Epochs after which a log gets a line at once."""


@dataclass
class Callbacks:
    """Functions that a fit calls; all are optional."""

    on_start: Callable[[Method, list[str]], None] = lambda _method, _notes: None
    """Before a training: the method and notes on its data."""
    on_part: Callable[[str, Method], None] = lambda _label, _method: None
    """Before a training that is one part of a whole: which part (`pre-training for dpaa`)."""
    on_epoch: Callable[[EpochReport], None] = lambda _report: None
    stop_requested: Callable[[], bool] = lambda: False
    say: Callable[[str], None] = lambda _line: None
    """Other messages for the user."""
    checkpoint_seconds: float = CHECKPOINT_SECONDS
    together: Together = ONE_PROCESS
    """The processes that train together, of which this one leads."""


@dataclass
class TrainingProgress:
    """Progress of one training, or of one part of it."""

    name: str
    """Of the method."""
    part: str
    """Which part of a whole, such as `pre-training for dpaa`; empty for the whole."""
    epochs: int
    """At most."""
    stopping: EarlyStopping | None
    """When it may end; None where all epochs are trained."""
    steps: int = 1
    """Of an epoch."""
    clock: Callable[[], float] = time.monotonic
    report: EpochReport | None = None
    measured: float | None = None
    """The last validation."""
    _times: deque[float] = field(default_factory=lambda: deque(maxlen=PACE + 1))

    def __post_init__(self) -> None:
        self._began = self.clock()
        self._times.append(self._began)

    @classmethod
    def of(cls, method: Method, part: str = "") -> TrainingProgress:
        """Of a method that is about to be fitted; a closed form has no epochs."""
        if not isinstance(method, GraphMethod):
            return cls(method.name, part, 0, None)
        steps = max(method.compute.n_batches, 1)
        return cls(method.name, part, method.epochs, EarlyStopping.of(method), steps)

    def update(self, report: EpochReport) -> None:
        """Take note of an epoch that has ended."""
        self.report = report
        self._times.append(self.clock())
        if report.valid:
            self.measured = report.valid[MONITOR]

    @property
    def done(self) -> int:
        """Epochs, those before a resume included."""
        return self.report.epoch if self.report else 0

    @property
    def pace(self) -> float:
        """Epochs per second, lately."""
        passed = self._times[-1] - self._times[0]
        return (len(self._times) - 1) / passed if passed > 0 else 0.0

    def left(self) -> tuple[float, float] | None:
        """Seconds left, at least and at most; None before the first epoch is done."""
        if self.report is None or not self.pace:
            return None
        first = self.epochs
        if self.measured is not None and (stop := self.stopping) is not None:
            patient = self.report.best_epoch + max(stop.patience, math.ceil(stop.patience_steps / self.steps))
            first = min(self.epochs, max(patient, math.ceil(stop.minimum_steps / self.steps)))
        return max(0, first - self.done) / self.pace, (self.epochs - self.done) / self.pace

    @property
    def title(self) -> str:
        """The method, and which part it is."""
        return on_one_line(f"{self.name} ({self.part})" if self.part else self.name)

    def left_in_words(self) -> str:
        """`3 s to 2 min left`, and `of this part` where it is one."""
        left = self.left()
        if left is None:
            return ""
        least, most = (duration(seconds) for seconds in left)
        return f"{most if least == most else f'{least} to {most}'} left{' of this part' if self.part else ''}"

    def line(self) -> str:
        """All of it, for a log."""
        numbers = self._numbers()
        if numbers["valid"]:
            numbers["valid"] += f" ({numbers['best']})"
        numbers["best"] = ""
        return _joined(f"epoch {self.done}", *numbers.values(), self.left_in_words())

    def fitted(self, width: int) -> str:
        """One line of at most `width` characters: what matters least is left out first, the name is cut last."""
        seconds = int(self.clock() - self._began)
        pieces = {"title": self.title, "bar": "", "done": f"{self.done:,}/{self.epochs:,}", **self._numbers()}
        pieces["left"] = self.left_in_words()
        pieces["elapsed"] = f"{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        for dropped in ("", "elapsed", "pace", "best", "loss", "valid"):
            pieces.pop(dropped, None)
            free = width - len(_joined(*pieces.values())) - len(GAP)
            if free >= NARROWEST_BAR:
                pieces["bar"] = bar(self.done / max(self.epochs, 1), min(free, WIDEST_BAR))
                return _joined(*pieces.values())
        longest = max(len(self.title) + free + len(GAP), SHORTEST_NAME)
        if len(self.title) > longest:
            pieces["title"] = f"{self.title[: longest - 1]}…"
        return _joined(*pieces.values())[:width]

    def _numbers(self) -> dict[str, str]:
        numbers = dict.fromkeys(("loss", "valid", "best", "pace"), "")
        if self.report is not None:
            numbers["loss"] = f"loss {self.report.loss:.4f}"
            fast = self.pace >= 1 or not self.pace
            numbers["pace"] = f"{self.pace:.1f} epochs/s" if fast else f"{1 / self.pace:.1f} s an epoch"
            if self.measured is not None:
                numbers["valid"] = f"{MONITOR} {self.measured:.4f}"
                numbers["best"] = f"best in epoch {self.report.best_epoch:,}"
        return numbers


def bar(share: float, width: int) -> str:
    """`━━━━╸   ` of that width."""
    halves = round(min(max(share, 0.0), 1.0) * width * 2)
    return ("━" * (halves // 2) + "╸" * (halves % 2)).ljust(width)


def duration(seconds: float) -> str:
    """`45 s`, `3 min`, `2.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _joined(*pieces: str) -> str:
    return GAP.join(piece for piece in pieces if piece)


# ------------------------------------------------------------------ displays


class TrainingDisplay:
    """Lines on standard error: after the first epochs, then every ten seconds."""

    every = PLAIN_SECONDS

    def __init__(self) -> None:
        self.progress: TrainingProgress | None = None
        self._method: Method | None = None
        self._shown, self._epochs = 0.0, 0

    def callbacks(self, **others: Any) -> Callbacks:
        """Callbacks that show a training; `others` are further fields of them."""
        return Callbacks(on_start=self.start, on_part=self.part, on_epoch=self.epoch, **others)

    def part(self, label: str, method: Method) -> None:
        """Begin a training, or with a label one part of it."""
        self._method, self.progress = method, TrainingProgress.of(method, label)
        self._shown, self._epochs = time.monotonic(), 0

    def start(self, method: Method, notes: list[str]) -> None:
        """Begin the training of a method."""
        del notes
        self.part(self.progress.part if self.progress and method is self._method else "", method)

    def epoch(self, report: EpochReport) -> None:
        """Show an epoch that has ended, if it is time to."""
        assert self.progress is not None
        self.progress.update(report)
        self._epochs += 1
        left, waited = self.progress.left(), time.monotonic() - self._shown
        if self._epochs in FIRST_EPOCHS or waited >= self.every or (left is not None and left[0] <= 0):
            self._shown = time.monotonic()
            self.show(self.progress)

    def show(self, progress: TrainingProgress) -> None:
        """Write a line."""
        sys.stderr.write(f"{progress.title}: {progress.line()}\n")


class NotebookDisplay(TrainingDisplay):
    """A bar below the cell, one for each part."""

    every = NOTEBOOK_SECONDS

    def part(self, label: str, method: Method) -> None:
        """Begin a bar."""
        super().part(label, method)
        self._handle: Any = None

    def show(self, progress: TrainingProgress) -> None:
        """Draw the bar, or change it."""
        shown = _Html(html_progress(progress.done, progress.epochs, f"{progress.title}: {progress.line()}"))
        if self._handle is None:
            self._handle = sys.modules["IPython"].display.display(shown, display_id=True)
        else:
            self._handle.update(shown)


class _Html(str):
    def _repr_html_(self) -> str:
        return str(self)


def in_notebook() -> bool:
    """Whether this is a kernel that shows HTML; IPython is not imported for it."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


def watched(progress: bool | None) -> Callbacks:
    """Callbacks that show a fit: with None in notebooks only, with True everywhere, with False nowhere."""
    if progress not in (None, True, False):
        raise InputError(f"progress must be True, False or None (in notebooks only), got {progress!r}")
    if progress is False or (progress is None and not in_notebook()):
        return Callbacks()
    return (NotebookDisplay() if in_notebook() else TrainingDisplay()).callbacks()
