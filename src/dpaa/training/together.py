"""Processes that train one method together, each some columns of its tables (`graph.columns`), or those of some users
alone (`graph.users`).

One leads: it alone reads and writes runs, validates and decides.  The others follow: they hear what to train, hold
their columns, and say nothing.  What is to be agreed on in every step goes through torch.distributed; what takes long
(a validation, what lies between two trainings) is waited for without limit at the store that the launcher keeps.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch import Tensor

from dpaa._text import counted
from dpaa.errors import InputError
from dpaa.graph.columns import ALONE, Peers

STEP_SECONDS = 1800.0
"""After which a process that says nothing is lost, though its connection stands; a step or a checkpoint is quicker."""
WAIT_SECONDS = 5.0
"""Between two looks at the store."""
FAREWELL_SECONDS = 20.0
"""How long a process that is told to end waits for the leading one to end the training in order."""
DTYPES = {str(kind): kind for kind in (torch.float32, torch.float64, torch.int64, torch.int32, torch.uint8, torch.bool)}


class LostProcessError(InputError):
    """A process that trained with this one is gone."""

    def __init__(self) -> None:
        super().__init__(
            "a process that trained with this one was lost, perhaps for want of memory; what is done is in the last "
            "checkpoint: continue with the same call and --resume"
        )


class Ended(Exception):  # noqa: N818  # it is not an error: there is nothing left to do
    """The process that leads has ended the training."""


class Together(Protocol):
    """Who trains along."""

    @property
    def peers(self) -> Peers:
        """All of them."""

    @property
    def column_peers(self) -> Peers:
        """Those who hold other columns of the same users."""

    @property
    def user_peers(self) -> Peers:
        """Those who hold the same columns of other users."""

    def agree(self, wish: int) -> int:
        """What the leading process wishes."""

    def share(self, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What the leading process has worked out, for all; it may take long."""

    def say(self, content: dict[str, Any]) -> None:
        """Of the leading process: what the others wait for."""

    def from_leader(self, tensors: dict[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
        """The leading process's tensors, one after the other, with their names."""

    def reports(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """How the beginning went for the others, by rank."""


class Group:
    """The processes of torch.distributed."""

    def __init__(self) -> None:
        self.rank, self.count = dist.get_rank(), dist.get_world_size()
        self._store = dist.distributed_c10d._get_default_store()
        self.column_peers: Peers = self
        self.user_peers: Peers = ALONE
        self._said = 0
        self._asked_to_end: float | None = None

    @classmethod
    @contextmanager
    def joined(cls, user_parts: int = 1) -> Iterator[Group]:
        """Take part in what `torchrun` started; left in order where the training has ended."""
        kind = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        with _lost():
            dist.init_process_group(kind, timeout=timedelta(seconds=STEP_SECONDS))
            group = cls()
            group.column_peers, group.user_peers = _grid(group, user_parts)
        try:
            yield group
        finally:
            group._leave()

    @property
    def peers(self) -> Peers:
        """All of them."""
        return self

    # ------------------------------------------------------------------ as `Peers`

    def everyone(self, part: Tensor) -> list[Tensor]:
        """What each has, by rank."""
        found = [torch.empty_like(part) for _ in range(self.count)]
        with _lost():
            dist.all_gather(found, part)
        return found

    def send(self, part: Tensor, to: int) -> None:
        """Hand over to one, who receives."""
        with _lost():
            dist.send(part, to)

    def receive(self, part: Tensor, sender: int) -> None:
        """Overwrite with what that one sends."""
        with _lost():
            dist.recv(part, sender)

    # ------------------------------------------------------------------ what the leading process decides

    def agree(self, wish: int) -> int:
        """What the leading process wishes; in every step, so it is one small broadcast."""
        number = torch.tensor(wish)
        with _lost():
            dist.broadcast(number, 0)
        return int(number)

    def share(self, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What the leading process has worked out."""
        if self.rank:
            return self.hear()
        found = work()
        self.say(found)
        return found

    def say(self, content: dict[str, Any]) -> None:
        """To all who hear."""
        self._said += 1
        with _lost():
            self._store.set(f"dpaa.{self._said}", json.dumps(content))

    def hear(self) -> dict[str, Any]:
        """What the leading process says next, whenever that is; raises `Ended` where it is the last."""
        self._said += 1
        key = f"dpaa.{self._said}"
        with _lost():
            while not self._store.check([key]):
                asked = self._asked_to_end
                if asked is not None and time.monotonic() - asked > FAREWELL_SECONDS:
                    raise LostProcessError
                try:
                    self._store.wait([key], timedelta(seconds=WAIT_SECONDS))
                except dist.DistStoreError:
                    continue  # it takes longer
            content: dict[str, Any] = json.loads(self._store.get(key))
        if content.get("end"):
            raise Ended
        return content

    def from_leader(self, tensors: dict[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
        """The leading process's tensors, one after the other."""
        about = self.share(lambda: {name: [str(one.dtype), *one.shape] for name, one in tensors.items()})
        for name, (kind, *shape) in about.items():
            tensor = torch.empty(shape, dtype=DTYPES[kind]) if self.rank else tensors[name].contiguous().cpu()
            with _lost():
                dist.broadcast(tensor, 0)
            yield name, tensor

    def _leave(self) -> None:
        """The leading process says that it is over; where it keeps the store itself, all must have heard it first."""
        with suppress(LostProcessError), _lost():
            if self.rank:
                self._store.set(f"dpaa.left.{self.rank}", "")
                return
            self.say({"end": True})
            others = [f"dpaa.left.{rank}" for rank in range(1, self.count)]
            if others and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
                self._store.wait(others, timedelta(seconds=WAIT_SECONDS))

    # ------------------------------------------------------------------ beginning and end

    def report(self, content: dict[str, Any]) -> None:
        """Of a process that follows: how its beginning went."""
        with _lost():
            self._store.set(f"dpaa.of.{self.rank}", json.dumps(content))

    def reports(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """What the others reported, by rank."""
        for rank in range(1, self.count):
            key = f"dpaa.of.{rank}"
            with _lost():
                self._store.wait([key], timedelta(seconds=STEP_SECONDS))
                yield rank, json.loads(self._store.get(key))

    def follow_signals(self) -> None:
        """The leading process is told to stop as well, and stops all in order: this one waits for that."""

        def receive(_number: int, _frame: object) -> None:
            self._asked_to_end = time.monotonic()

        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, receive)


class SomePeers:
    """Some of the processes of torch.distributed, as `Peers`."""

    def __init__(self, ranks: Sequence[int], group: Any) -> None:
        self._ranks, self._group = ranks, group
        self.rank, self.count = ranks.index(dist.get_rank()), len(ranks)

    def everyone(self, part: Tensor) -> list[Tensor]:
        """What each of them has."""
        found = [torch.empty_like(part) for _ in range(self.count)]
        with _lost():
            dist.all_gather(found, part, group=self._group)
        return found

    def send(self, part: Tensor, to: int) -> None:
        """Hand over to one of them, who receives."""
        with _lost():
            dist.send(part, self._ranks[to])

    def receive(self, part: Tensor, sender: int) -> None:
        """Overwrite with what that one sends."""
        with _lost():
            dist.recv(part, self._ranks[sender])


def _grid(group: Group, user_parts: int) -> tuple[Peers, Peers]:
    """Who holds the same users, and who the same columns: processes stand in rows of the same users."""
    rows = grid_of(group.count, user_parts)
    if user_parts == 1:
        return group, ALONE
    found: list[Peers] = []
    for lines in (rows, [list(line) for line in zip(*rows, strict=True)]):
        for ranks in lines:
            made = dist.new_group(ranks)  # by all of them, whether they are in it or not
            if group.rank in ranks:
                found.append(SomePeers(ranks, made) if len(ranks) > 1 else ALONE)
    return found[0], found[1]


def grid_of(processes: int, user_parts: int) -> list[list[int]]:
    """Which processes hold which part of the users, and in that order which part of the columns."""
    if processes % user_parts:
        several = counted(processes, "process", "processes")
        raise InputError(
            f"{several} cannot hold {user_parts} parts of the users, as many each; let the number of processes be a "
            "multiple of --user-parts"
        )
    columns = processes // user_parts
    return [list(range(part * columns, (part + 1) * columns)) for part in range(user_parts)]


class OneProcess:
    """Nobody trains along."""

    def __init__(self) -> None:
        self.peers: Peers = ALONE
        self.column_peers: Peers = ALONE
        self.user_peers: Peers = ALONE

    def agree(self, wish: int) -> int:
        """As it wishes."""
        return wish

    def share(self, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Its own."""
        return work()

    def say(self, content: dict[str, Any]) -> None:
        """Nobody waits."""

    def from_leader(self, tensors: dict[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
        """Its own."""
        return iter(tensors.items())

    def reports(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Of nobody."""
        return iter(())


ONE_PROCESS = OneProcess()


def started_together() -> bool:
    """Whether this process is one of several that `torchrun` started."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1 and "RANK" in os.environ


@contextmanager
def _lost() -> Iterator[None]:
    """What torch.distributed raises when a connection breaks or stays silent for too long."""
    try:
        yield
    except RuntimeError:
        raise LostProcessError from None
