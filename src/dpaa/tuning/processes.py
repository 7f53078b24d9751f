"""Several workers at a time: processes that end with their parent, however it ends."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import closing
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Literal

from dpaa.data.dataset import read_dataset
from dpaa.errors import InputError
from dpaa.training.trainer import Interrupted
from dpaa.tuning.study import TrialStore, storage_in_words
from dpaa.tuning.work import Order, Worker
from dpaa.tuning.workers import end_with_parent

Stage = Literal["search", "retrain"]


def in_processes(stage: Stage, order: Order, dataset: Path, jobs: int, say: Callable[[str], None]) -> int:
    """Let workers do a stage and wait for them.  Returns how many ended otherwise than by finishing, killed ones."""
    context = get_context("spawn")  # not forked: torch's threads do not survive a fork
    workers, readers = [], []
    wrong: list[str] = []
    try:
        for _ in range(jobs):
            reader, writer = context.Pipe(duplex=False)
            worker = context.Process(target=_run, args=(stage, order, dataset, writer), daemon=True)
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
                if kind == "say":
                    say(line)
                else:
                    wrong.append(line)
    finally:
        for worker in workers:
            if wrong or readers:
                worker.terminate()
            worker.join()
    if wrong:
        raise InputError(wrong[0])
    return sum(worker.exitcode != 0 for worker in workers)


def _run(stage: Stage, order: Order, dataset: Path, writer: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # control-C reaches the whole group; the parent decides
    end_with_parent()
    worker = Worker(order, read_dataset(dataset), say=lambda line: writer.send(("say", line)))
    try:
        if stage == "search":
            with storage_in_words(order.study), closing(TrialStore(order.study)) as store:
                worker.search(store)
        else:
            worker.retrain()
    except InputError as error:
        writer.send(("wrong", str(error)))
    except (Interrupted, BrokenPipeError):
        raise SystemExit(1) from None
