"""Processes that train: one core each, deaf to ctrl-C (their parent tells them to stop), and gone when it is gone."""

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

from dpaa.errors import InputError

T = TypeVar("T")

_stop: Event | None = None


def in_processes(
    work: Callable[..., T], calls: Sequence[tuple[Any, ...]], jobs: int
) -> Iterator[tuple[tuple[Any, ...], T]]:
    """`work(*call)` for each call, a few processes at a time; call and result as they come.

    However this ends (an error, ctrl-C, a reader who leaves), the trainings in flight are asked to leave a checkpoint
    and waited for.  If this process is killed, its workers end by themselves.
    """
    if jobs == 1:
        for call in calls:
            yield call, work(*call)
        return
    context = get_context("spawn")  # not forked: torch's threads do not survive a fork
    stop = context.Event()
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin, initargs=(stop,))
    try:
        waiting = {pool.submit(work, *call): call for call in calls}
        for future in as_completed(waiting):
            yield waiting[future], future.result()
    except BrokenProcessPool:
        raise InputError(
            "a training process was killed, perhaps for want of memory; call again with fewer --jobs: "
            "what is finished is kept"
        ) from None
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


def stop_requested() -> bool:
    """Whether the trainings in flight shall leave a checkpoint and end."""
    return _stop is not None and _stop.is_set()


def _begin(stop: Event) -> None:
    """In each worker, before its first task."""
    global _stop
    import torch

    _stop = stop
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()


def end_with_parent() -> None:
    """End this worker when its parent is killed, whatever it is at: nobody else would tell it."""
    parent = parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    Thread(target=watch, daemon=True).start()
