"""Processes of one training, played by threads: quick to start, and everything they send can be counted."""

import threading
from collections.abc import Callable
from queue import Queue
from typing import Any
from unittest.mock import patch

from torch import Tensor

from dpaa.training.distributed import Peers

ALONE = Peers()


class Table:
    """What the threads share."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.barrier = threading.Barrier(count, timeout=30)
        self.slots: list[Any] = [None] * count
        self.mail: dict[tuple[int, int], Queue[Any]] = {
            (one, other): Queue() for one in range(count) for other in range(count)
        }
        self.sent: list[int] = []
        """Bytes of every message that a step needs from each."""


class ThreadGroup:
    """One of them, in place of `dpaa.training.distributed.Peers`."""

    def __init__(self, table: Table, rank: int) -> None:
        self._table, self.rank, self.count = table, rank, table.count

    def everyone(self, part: Tensor) -> list[Tensor]:
        if not self.rank:
            self._table.sent.append(part.numel() * part.element_size())
        return list(self._exchanged(part.clone()))

    def broadcast(self, value: Any) -> Any:
        return self._exchanged(value)[0]

    def _exchanged(self, part: Any) -> list[Any]:
        self._table.slots[self.rank] = part
        self._table.barrier.wait()
        parts = list(self._table.slots)
        self._table.barrier.wait()
        return parts

    def send(self, part: Tensor, to: int) -> None:
        self._table.mail[self.rank, to].put(part.clone())

    def receive(self, part: Tensor, sender: int) -> None:
        part.copy_(self._table.mail[sender, self.rank].get(timeout=30))


def in_threads(count: int, work: Callable[[int], Any]) -> Table:
    """Run `work(rank)` in every process; what the first of them raises is raised here."""
    table, wrong, local = Table(count), [], threading.local()

    def peers() -> Peers:
        return getattr(local, "group", ALONE)

    def run(rank: int) -> None:
        local.group = ThreadGroup(table, rank) if count > 1 else ALONE
        try:
            work(rank)
        except BaseException as error:  # raised again below, whatever it is
            wrong.append(error)
            table.barrier.abort()

    with patch("dpaa.training.distributed.peers", peers):
        threads = [threading.Thread(target=run, args=(rank,)) for rank in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if wrong:
        raise next((error for error in wrong if not isinstance(error, threading.BrokenBarrierError)), wrong[0])
    return table
