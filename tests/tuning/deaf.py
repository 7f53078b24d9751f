"""What workers of the tests do: in a module that is quickly imported, since every worker imports it."""

from __future__ import annotations

import signal

DEAF = signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def deaf_to_interrupts(_number: int) -> bool:
    """Whether ctrl-C was held back when this module was imported, in the worker's first moments."""
    return DEAF
