"""Processes that train together, played by threads of one: quick to start, and everything they say can be counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from queue import Queue
from threading import Barrier, Lock, Thread
from typing import Any

from torch import Tensor

from dpaa.graph.columns import Peers
from dpaa.training.together import Ended


class Table:
    """What the threads share."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.barrier = Barrier(count, timeout=30)
        self.slots: list[Any] = [None] * count
        self._mail: dict[tuple[int, int], Queue[Any]] = {}
        self._lock = Lock()
        self.sent: list[int] = []
        """Bytes of every message that a step needs from each."""

    def mail(self, sender: int, receiver: int) -> Queue[Any]:
        """What one has sent and the other not yet received; made by whoever comes first."""
        with self._lock:
            return self._mail.setdefault((sender, receiver), Queue())


class ThreadGroup:
    """One of them, as `training.together.Together`."""

    def __init__(self, table: Table, rank: int) -> None:
        self._table, self.rank, self.count = table, rank, table.count

    @property
    def peers(self) -> Peers:
        return self

    def everyone(self, part: Tensor) -> list[Tensor]:
        if not self.rank:
            self._table.sent.append(part.numel() * part.element_size())
        return list(self._exchanged(part.clone()))

    def _exchanged(self, part: Any) -> list[Any]:
        self._table.slots[self.rank] = part
        self._table.barrier.wait()
        found = list(self._table.slots)
        self._table.barrier.wait()
        return found

    def send(self, part: Tensor, to: int) -> None:
        self._table.mail(self.rank, to).put(part.clone())

    def receive(self, part: Tensor, sender: int) -> None:
        part.copy_(self._table.mail(sender, self.rank).get(timeout=120))

    def agree(self, wish: int) -> int:
        return int(self._exchanged(wish)[0])

    def share(self, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        if self.rank:
            return self.hear()
        found = work()
        self.say(found)
        return found

    def say(self, content: dict[str, Any]) -> None:
        for rank in range(1, self.count):
            self._table.mail(-1, rank).put(content)

    def hear(self) -> dict[str, Any]:
        content: dict[str, Any] = self._table.mail(-1, self.rank).get(timeout=30)
        if content.get("end"):
            raise Ended
        return content

    def from_leader(self, tensors: dict[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
        yield from self._exchanged({name: one.clone() for name, one in tensors.items()})[0].items()

    def report(self, content: dict[str, Any]) -> None:
        self._table.mail(self.rank, -1).put(content)

    def reports(self) -> Iterator[tuple[int, dict[str, Any]]]:
        for rank in range(1, self.count):
            yield rank, self._table.mail(rank, -1).get(timeout=30)


def in_threads(count: int, lead: Callable[[ThreadGroup], Any], follow: Callable[[ThreadGroup], None]) -> Table:
    """Run `lead` in the first and `follow` in the others; what any of them raises is raised here."""
    table, wrong = Table(count), []

    def work(rank: int) -> None:
        group = ThreadGroup(table, rank)
        try:
            follow(group) if rank else lead(group)
        except BaseException as error:  # told below, whatever it is
            wrong.append(error)
            table.barrier.abort()
        finally:
            if not rank:
                group.say({"end": True})

    threads = [Thread(target=work, args=(rank,)) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        raise wrong[0]
    return table
