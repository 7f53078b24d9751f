"""Waiting for other processes; the machine may be busy."""

import time
from collections.abc import Callable


def wait_until(true: Callable[[], object], seconds: float = 300.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.05)
