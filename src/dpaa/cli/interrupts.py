"""Signals: ctrl-C in libraries that would swallow it, and stops that let a training leave a checkpoint."""

from __future__ import annotations

import os
import signal
import sys
from threading import Timer, current_thread, main_thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

AGAIN_SECONDS = 0.02
"""After which a callback is over that an interrupt came into."""


class Interrupts:
    """While it is entered, remembers whether ctrl-C came, and lets one that a callback swallowed come again."""

    def __init__(self) -> None:
        self.came = False

    def _raise(self, number: int, frame: FrameType | None) -> None:
        self.came = True
        signal.default_int_handler(number, frame)

    def _not_raised(self, what: sys.UnraisableHookArgs) -> None:
        """In a destructor, say, or in a validator written in another language: Python prints what was raised there."""
        if issubclass(what.exc_type, KeyboardInterrupt):
            Timer(AGAIN_SECONDS, os.kill, (os.getpid(), signal.SIGINT)).start()
        else:
            self._hook(what)

    def __enter__(self) -> None:
        self._hook = sys.unraisablehook
        sys.unraisablehook = self._not_raised
        # Not where it is ignored, as under nohup, nor in another thread, where no handler may be set.
        self._handles = (
            current_thread() is main_thread() and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        )
        if self._handles:
            signal.signal(signal.SIGINT, self._raise)

    def __exit__(self, *_: object) -> None:
        sys.unraisablehook = self._hook
        if self._handles:
            signal.signal(signal.SIGINT, signal.default_int_handler)


class StopSignals:
    """Remember SIGINT and SIGTERM instead of ending, so that training can leave a checkpoint; twice ends at once.

    A launcher of several processes passes on what the terminal has sent already, so there a second one is ignored.
    """

    def __init__(self) -> None:
        self.received: int | None = None

    def _receive(self, number: int, _frame: object) -> None:
        if self.received is not None and "WORLD_SIZE" not in os.environ:
            raise KeyboardInterrupt
        self.received = number

    def __enter__(self) -> None:
        self._before = {number: signal.signal(number, self._receive) for number in (signal.SIGINT, signal.SIGTERM)}

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
