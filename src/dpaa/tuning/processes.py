"""A pool of processes that train: one core each, stopped by their parent, gone when it is gone."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from multiprocessing.synchronize import Event
from threading import Thread
from typing import Any, TypeVar

import torch

from dpaa.errors import InputError

T = TypeVar("T")
SPAWN = get_context("spawn")
"""Not forked: torch's threads do not survive a fork."""
_stop: Event | None = None


def in_pool(work: Callable[..., T], calls: Sequence[tuple[Any, ...]], jobs: int) -> Iterator[tuple[tuple[Any, ...], T]]:
    """Run calls of a function in processes, or in this one if `jobs` is 1.

    However this ends (an error, an interrupt, a consumer that leaves), active calls see `stop_requested` and are waited
    for.  If this process is killed, its workers end by themselves.

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
    """Whether the parent of this worker wants its trainings to stop; False outside of a pool."""
    return _stop is not None and _stop.is_set()


def _begin(stop: Event) -> None:
    """In each worker, before its first call."""
    global _stop
    _stop = stop
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl-C reaches the whole group; the parent decides
    parent = parent_process()
    assert parent is not None

    def end_with_parent() -> None:
        parent.join()
        os._exit(1)

    Thread(target=end_with_parent, daemon=True).start()
