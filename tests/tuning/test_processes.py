"""A pool of processes: interrupted, killed."""

from __future__ import annotations

import os
import signal
import threading
import time
from multiprocessing import resource_tracker

import pytest

from dpaa.tuning import processes
from dpaa.tuning.processes import KilledWorkerError, in_pool
from tests.tuning.deaf import deaf_to_interrupts


def test_workers_are_deaf_to_interrupts_from_birth() -> None:
    """A ctrl-C that reaches them while they import would print a traceback each."""
    resource_tracker._resource_tracker._stop()  # starting it, which comes with the first process, lifts the mask
    assert [deaf for _, deaf in in_pool(deaf_to_interrupts, [(1,), (2,)], 2)] == [True, True]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_a_worker_that_is_killed_ends_the_pool_in_one_sentence() -> None:
    with pytest.raises(KilledWorkerError, match="a training process was killed, perhaps for want of memory"):
        list(in_pool(os._exit, [(1,), (1,)], 2))


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_the_middle_of_a_start_waits_for_its_end_whichever_thread_takes_it(which: signal.Signals) -> None:
    class Arrived(Exception):  # noqa: N818
        pass

    def handle(_number: int, _frame: object) -> None:
        raise Arrived

    over, reached = threading.Event(), []

    def start(thread: int) -> None:
        with processes._interrupts_wait():
            signal.pthread_kill(thread, which)
            time.sleep(0.05)
            reached.append("the end of the start")

    other = threading.Thread(target=over.wait)  # not masked, as a library's threads are
    before = signal.signal(which, handle)
    other.start()
    try:
        assert other.ident is not None
        with pytest.raises(Arrived):
            start(other.ident)
        assert reached == ["the end of the start"]
        assert signal.getsignal(which) is handle
    finally:
        over.set()
        other.join()
        signal.signal(which, before)
