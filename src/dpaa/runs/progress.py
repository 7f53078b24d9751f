"""How far a training is, in a line of any width: for a terminal, a notebook or a log.

The time left is a range: from "nothing gets better any more", when patience ends it, to "every epoch is trained"; both
by the pace of the last epochs.  Where a training is one part of a whole, it is that of the part.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from dpaa.methods.base import Method
from dpaa.methods.graph_method import GraphMethod
from dpaa.text import on_one_line
from dpaa.training.stopping import EarlyStopping
from dpaa.training.trainer import MONITOR, EpochReport

PACE = 20
"""The last epochs by which the pace is measured."""
NARROWEST_BAR, WIDEST_BAR = 8, 24
SHORTEST_NAME = 8
GAP = "  "


@dataclass
class TrainingProgress:
    """One training, or one part of it; told of every epoch."""

    name: str
    """Of the method."""
    part: str
    """What part of a whole it is, such as `pre-training for dpaa`; empty where it is the whole."""
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
    _began: float = 0.0

    @classmethod
    def of(cls, method: Method, part: str = "", clock: Callable[[], float] = time.monotonic) -> TrainingProgress:
        """Of a method that is about to be trained; without epochs there is nothing to tell."""
        if not isinstance(method, GraphMethod):
            return cls(method.name, part, 0, None, clock=clock)
        found = cls(method.name, part, method.epochs, EarlyStopping.of(method), clock=clock)
        found.steps = max(method.compute.n_batches, 1)
        found._began = clock()
        found._times.append(found._began)
        return found

    def tell(self, report: EpochReport) -> None:
        """An epoch has ended."""
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
        """Epochs a second, lately."""
        passed = self._times[-1] - self._times[0] if self._times else 0.0
        return (len(self._times) - 1) / passed if passed > 0 else 0.0

    def left(self) -> tuple[float, float] | None:
        """Seconds left, at least and at most; None before the first epoch is done."""
        if self.report is None or not self.pace:
            return None
        first = self.epochs
        if self.measured is not None and self.stopping is not None:
            best, steps = self.report.best_epoch, self.stopping
            patient = best + max(steps.patience, math.ceil(steps.patience_steps / self.steps))
            first = min(self.epochs, max(patient, math.ceil(steps.minimum_steps / self.steps)))
        return max(0, first - self.done) / self.pace, (self.epochs - self.done) / self.pace

    @property
    def title(self) -> str:
        """The method, and what part it is."""
        return on_one_line(f"{self.name} ({self.part})" if self.part else self.name)

    def left_in_words(self) -> str:
        """`3 s to 2 min left`, `of this part` where it is one."""
        left = self.left()
        if left is None:
            return ""
        least, most = (duration(seconds) for seconds in left)
        return f"{most if least == most else f'{least} to {most}'} left{' of this part' if self.part else ''}"

    def line(self) -> str:
        """All of it, for a log."""
        return GAP.join(piece for piece in (f"epoch {self.done}", *self._numbers(), self.left_in_words()) if piece)

    def fitted(self, width: int) -> str:
        """One line of at most so many characters: what matters least is left out first, the name is cut last."""
        elapsed = _clock_words(self.clock() - self._began)
        loss, recall, best, pace = self._numbers(apart=True)
        pieces = [self.title, "", f"{self.done:,}/{self.epochs:,}", loss, recall, best, pace]
        pieces += [self.left_in_words(), elapsed]
        for dropped in (None, 8, 6, 5, 3, 4):  # elapsed, pace, best epoch, loss, validation
            if dropped is not None:
                pieces[dropped] = ""
            room = width - len(_joined(pieces)) - len(GAP)
            if room >= NARROWEST_BAR:
                pieces[1] = bar(self.done / max(self.epochs, 1), min(room, WIDEST_BAR))
                return _joined(pieces)
        rest = len(_joined(["", *pieces[1:]])) + len(GAP)
        if len(self.title) + rest > width:
            pieces[0] = shortened_name(self.title, max(width - rest, SHORTEST_NAME))
        return _joined(pieces)[:width]

    def _numbers(self, apart: bool = False) -> tuple[str, ...]:
        report = self.report
        if report is None:
            return ("", "", "", "")
        valid, best = "", ""
        if self.measured is not None:
            valid, best = f"{MONITOR} {self.measured:.4f}", f"best in epoch {report.best_epoch:,}"
        pace = f"{self.pace:.1f} epochs/s" if self.pace >= 1 or not self.pace else f"{1 / self.pace:.1f} s an epoch"
        if apart:
            return f"loss {report.loss:.4f}", valid, best, pace
        return f"loss {report.loss:.4f}", f"{valid} ({best})" if valid else "", pace


def bar(share: float, width: int) -> str:
    """`━━━━╸   ` of that width."""
    halves = round(min(max(share, 0.0), 1.0) * width * 2)
    return ("━" * (halves // 2) + "╸" * (halves % 2)).ljust(width)


def shortened_name(name: str, width: int) -> str:
    """Its beginning, with an ellipsis where something is missing."""
    return name if len(name) <= width else f"{name[: width - 1]}…"


def duration(seconds: float) -> str:
    """`45 s`, `3 min`, `2.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _clock_words(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


def _joined(pieces: list[str]) -> str:
    return GAP.join(piece for piece in pieces if piece)
