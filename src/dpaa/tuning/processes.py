"""Processes that train: one core each, deaf to ctrl-C (their parent tells them to stop), and gone when it is gone."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.synchronize import Event
from threading import Thread, current_thread, main_thread
from typing import Any, TypeVar

import torch

from dpaa.errors import InputError
from dpaa.training.trainer import Interrupted

T = TypeVar("T")
SPAWN = get_context("spawn")
"""Not forked: torch's threads do not survive a fork."""

WAITING = (signal.SIGINT, signal.SIGTERM)

_stop: Event | None = None


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Hold ctrl-C and SIGTERM back for a moment: a process is started wholly or not at all, and deaf from birth.

    The mask is for the new process, which inherits it.  It does not suffice here: another thread of this process, one
    of a library's, may take the signal, and Python would still run the handler in the middle of a start.
    """
    resource_tracker.ensure_running()  # here, as starting it with the first process would lift the mask
    came: list[int] = []
    main = current_thread() is main_thread()  # only there may handlers be set, and only there are they run
    before = {which: signal.signal(which, lambda number, _frame: came.append(number)) for which in WAITING if main}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, WAITING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for which, handler in before.items():
            signal.signal(which, handler if handler is not None else signal.SIG_DFL)
        if came:
            signal.raise_signal(came[0])


# ---------------------------------------------------------------------- many calls, each with a result


def in_pool(work: Callable[..., T], calls: Sequence[tuple[Any, ...]], jobs: int) -> Iterator[tuple[tuple[Any, ...], T]]:
    """`work(*call)` for each call, a few processes at a time; call and result as they come.

    However this ends (an error, ctrl-C, a reader who leaves), the trainings in flight are asked to leave a checkpoint
    and waited for.  If this process is killed, its workers end by themselves.
    """
    if jobs == 1:
        for call in calls:
            yield call, work(*call)
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
            "a training process was killed, perhaps for want of memory; call again with fewer --jobs: "
            "what is finished is kept"
        ) from None
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


def stop_requested() -> bool:
    """Whether the trainings in flight shall leave a checkpoint and end."""
    return _stop is not None and _stop.is_set()


def _begin(stop: Event | None = None) -> None:
    """In each worker, before its first task."""
    global _stop
    _stop = stop
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # control-C reaches the whole group; the parent decides
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})  # to this it ends, as its parent may ask
    parent = parent_process()

    def end_with_parent() -> None:  # when it is killed, nobody else would tell this process
        if parent is not None:
            parent.join()
            os._exit(1)

    Thread(target=end_with_parent, daemon=True).start()


# ---------------------------------------------------------------------- the same work in several processes


def in_several(work: Callable[..., None], call: tuple[Any, ...], jobs: int, say: Callable[[str], None]) -> int:
    """`work(*call, say)` in each of some processes, which may be killed one by one.  Returns how many were."""
    workers, readers = [], []
    wrong: list[str] = []
    try:
        for _ in range(jobs):
            reader, writer = SPAWN.Pipe(duplex=False)
            worker = SPAWN.Process(target=_talk, args=(work, call, writer), daemon=True)
            with _interrupts_wait():
                worker.start()
            writer.close()  # the worker's end alone is left, so that its end, however it comes, is seen here
            workers.append(worker)
            readers.append(reader)
        while readers and not wrong:
            ready = wait(readers)
            for reader in [reader for reader in readers if reader in ready]:
                try:
                    kind, line = reader.recv()
                except EOFError:
                    readers.remove(reader)
                    continue
                say(line) if kind == "say" else wrong.append(line)
    finally:
        for worker in workers:
            if wrong or readers:
                worker.terminate()
            worker.join()
    if wrong:
        raise InputError(wrong[0])
    return sum(worker.exitcode != 0 for worker in workers)


def _talk(work: Callable[..., None], call: tuple[Any, ...], writer: Connection) -> None:
    _begin()
    try:
        work(*call, lambda line: writer.send(("say", line)))
    except InputError as error:
        writer.send(("wrong", str(error)))
    except (Interrupted, BrokenPipeError):
        raise SystemExit(1) from None
