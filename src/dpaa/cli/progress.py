"""How a training looks while it runs: a bar on a terminal, a line now and then otherwise."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from dpaa.cli.console import err, print_notes
from dpaa.training.trainer import MONITOR

if TYPE_CHECKING:
    from dpaa.methods.base import Method
    from dpaa.runs.fit import Preview
    from dpaa.training.trainer import EpochReport

PLAIN_SECONDS = 10.0


class EpochDisplay:
    """Loss, validation, epochs per second and the time left at most (early stopping may come sooner)."""

    def __init__(self, method: Method) -> None:
        settings = method.settings.model_dump()
        self._epochs = int(settings.get("epochs", 0))
        self._patience = int(settings.get("patience", 0))
        self._began = self._printed = time.monotonic()
        self._done = 0
        self._bar = err.bar() if err.is_terminal and self._epochs else None

    def __enter__(self) -> None:
        if self._bar:
            self._bar.start()

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._bar.stop()

    def start(self, method: Method, notes: list[str]) -> None:
        """Say what is about to happen."""
        print_notes(notes)
        if self._epochs:
            err.print(f"training {method.name} on {method.graph}")
        self._began = self._printed = time.monotonic()
        if self._bar:
            self._bar.begin(method.name, self._epochs)

    def preview(self, preview: Preview) -> None:
        """What it will cost, before it costs it."""
        worst = preview.seconds_per_epoch * preview.epochs
        err.print(
            f"about {preview.memory_bytes / 1e6:,.0f} MB and {preview.seconds_per_epoch:.2f} s an epoch; "
            f"at most {duration(worst)} for {preview.epochs:,} epochs, less with early stopping"
        )

    def epoch(self, report: EpochReport) -> None:
        """An epoch has ended."""
        self._done += 1
        per_second = self._done / max(time.monotonic() - self._began, 1e-9)
        patience = max(report.best_epoch, report.epoch) + self._patience if report.valid else self._epochs
        last = min(self._epochs, patience)
        valid = f"  {MONITOR} {report.valid[MONITOR]:.4f} (best in epoch {report.best_epoch})" if report.valid else ""
        line = f"epoch {report.epoch}  loss {report.loss:.4f}{valid}  {per_second:.1f} epochs/s"
        at_most = f"  at most {duration((self._epochs - report.epoch) / per_second)} left"
        if self._bar:
            self._bar.update(report.epoch, line + at_most)
        elif self._done in (1, 2, 5) or time.monotonic() - self._printed >= PLAIN_SECONDS or report.epoch == last:
            self._printed = time.monotonic()
            err.print(line + at_most)


def duration(seconds: float) -> str:
    """`45 s`, `3 min`, `2.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
