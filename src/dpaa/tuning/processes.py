"""A pool of training processes, one core each, that end with their parent."""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.synchronize import Event
from threading import Thread, current_thread, main_thread
from typing import Any, TypeVar

import torch

from dpaa.errors import InputError

T = TypeVar("T")
SPAWN = get_context("spawn")
"""Not forked: torch's threads do not survive a fork."""
WAITING = (signal.SIGINT, signal.SIGTERM)
_stop: Event | None = None


def in_pool(work: Callable[..., T], calls: Sequence[tuple[Any, ...]], jobs: int) -> Iterator[tuple[tuple[Any, ...], T]]:
    """Run calls of a function in processes, or in this one if `jobs` is 1.

    However this ends (an error, an interrupt, a consumer that leaves), active calls see `stop_requested` and are
    waited for.  If this process is killed, its workers end by themselves.

    Parameters
    ----------
    work : importable function
    calls : arguments of each call
    jobs : processes at a time

    Returns
    -------
    Pairs of call and result, as they are finished
    """
    if jobs == 1:
        yield from ((call, work(*call)) for call in calls)
        return
    stop = SPAWN.Event()
    pool = ProcessPoolExecutor(jobs, mp_context=SPAWN, initializer=_begin, initargs=(stop,))
    try:
        with _interrupts_wait():
            waiting = {pool.submit(work, *call): call for call in calls}
        for future in as_completed(waiting):
            yield waiting[future], future.result()
    except BrokenProcessPool:
        raise InputError(
            "a training process was killed; call again with fewer --jobs: what is finished is kept"
        ) from None
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


def stop_requested() -> bool:
    """Tell whether the parent of this worker wants its trainings to stop.

    Returns
    -------
    False outside of a pool
    """
    return _stop is not None and _stop.is_set()


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Delay ctrl-C and SIGTERM while processes are started, which inherit the mask and so never see a ctrl-C.

    The mask does not suffice in this process: another thread, one of a library's, may take the signal, and Python
    would still run the handler in the middle of a start.
    """
    resource_tracker.ensure_running()  # here, as starting it with the first process would lift the mask
    arrived: list[int] = []
    main = current_thread() is main_thread()  # only there may handlers be set, and only there are they run
    before = {which: signal.signal(which, lambda number, _frame: arrived.append(number)) for which in WAITING if main}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, WAITING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for which, handler in before.items():
            signal.signal(which, handler if handler is not None else signal.SIG_DFL)
        if arrived:
            signal.raise_signal(arrived[0])


def _begin(stop: Event) -> None:
    """Prepare a worker, before its first call."""
    global _stop
    _stop = stop
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl-C reaches the whole group; the parent decides
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    parent = parent_process()

    def end_with_parent() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    Thread(target=end_with_parent, daemon=True).start()
