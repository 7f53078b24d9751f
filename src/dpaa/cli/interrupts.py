"""Signals: ctrl-C in libraries that would swallow it, and stops that let a training leave a checkpoint."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import current_thread, main_thread
from types import FrameType

from dpaa.cli.console import err


@contextmanager
def recorded_interrupts() -> Iterator[list[int]]:
    """Record whether ctrl-C came: a library may take it for a fault of a file, and raise something else."""
    came: list[int] = []

    def record(number: int, frame: FrameType | None) -> None:
        came.append(number)
        signal.default_int_handler(number, frame)

    # Not where it is ignored, as under nohup, nor in another thread, where no handler may be set.
    if current_thread() is not main_thread() or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield came
        return
    signal.signal(signal.SIGINT, record)
    try:
        yield came
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


class _StopSignals:
    """Record SIGINT and SIGTERM instead of ending, so that training can leave a checkpoint; twice ends at once.

    A launcher of several processes passes on what the terminal has sent already, so there a second one is ignored.
    """

    def __init__(self) -> None:
        self.received: int | None = None

    def requested(self) -> bool:
        """Whether a signal came."""
        return self.received is not None

    def _receive(self, number: int, _frame: object) -> None:
        if self.received is not None and "WORLD_SIZE" not in os.environ:
            raise KeyboardInterrupt
        self.received = number

    def __enter__(self) -> None:
        self._before = {number: signal.signal(number, self._receive) for number in (signal.SIGINT, signal.SIGTERM)}

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


@contextmanager
def resumable(folder: Path, how: str = "the same call") -> Iterator[_StopSignals]:
    """Print how to resume work that SIGINT or SIGTERM stops, and exit with 128 + the signal.

    Parameters
    ----------
    folder : what is finished is in it
    how : what resumes

    Returns
    -------
    a context; while its `_StopSignals` are entered, a training leaves a checkpoint, else work ends at once
    """
    from dpaa.training.trainer import Interrupted

    def terminate(number: int, _frame: object) -> None:
        raise KeyboardInterrupt(number)

    signals, before = _StopSignals(), signal.signal(signal.SIGTERM, terminate)
    try:
        yield signals
    except (KeyboardInterrupt, Interrupted) as stop:
        if os.environ.get("RANK", "0") == "0":  # of several processes, the first prints
            err.print(f"stopped; resume with {how} (what is done is in {folder})")
        sys.exit(128 + (signals.received or (stop.args[0] if stop.args else signal.SIGINT)))
    finally:
        signal.signal(signal.SIGTERM, before)
