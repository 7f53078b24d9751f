"""A pool of processes: interrupted, killed."""

from __future__ import annotations

import os
import signal
from multiprocessing import resource_tracker

import pytest

from dpaa.tuning.processes import KilledWorkerError, in_pool
from tests.tuning.deaf import deaf_to_interrupts


def test_workers_never_see_an_interrupt() -> None:
    """A ctrl-C that reaches them while they import would print a traceback each."""
    resource_tracker._resource_tracker._stop()  # starting it, which comes with the first process, lifts the mask
    assert [deaf for _, deaf in in_pool(deaf_to_interrupts, [(1,), (2,)], 2)] == [True, True]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_a_worker_that_is_killed_ends_the_pool_in_one_sentence() -> None:
    with pytest.raises(KilledWorkerError, match="a training process was killed, perhaps for want of memory"):
        list(in_pool(os._exit, [(1,), (1,)], 2))
