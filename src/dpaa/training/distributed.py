"""One training in several processes that `torchrun` started: each runs the same command and holds some columns.

    torchrun --nproc-per-node 2 -m dpaa train data/mine --out runs/wide

Every process trains its columns of the tables (`dpaa.graph.columns`), step by step with the others.  Rank 0 alone reads
and writes run folders, validates and shows; what it reads or decides is broadcast.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from dpaa.errors import InputError
from dpaa.graph.columns import ALONE, Peers

Value = TypeVar("Value")
LONGEST_WAIT = timedelta(days=1)
"""For a validation by rank 0, or its training of a closed form; a process that died is noticed at once."""


class LostProcessError(InputError):
    """Another process of this training has ended."""

    def __init__(self) -> None:
        super().__init__(
            "another process of this training was lost, perhaps for want of memory; continue from the last checkpoint "
            "with the same command and --resume"
        )


@contextmanager
def process_group() -> Iterator[None]:
    """Join the processes that `torchrun` started, and leave them at the end; does nothing in a single process."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield
        return
    with _lost():
        dist.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo", timeout=LONGEST_WAIT)
    yield
    dist.destroy_process_group()


class Processes:
    """All processes of a training, as `dpaa.graph.columns.Peers` describes them."""

    def __init__(self) -> None:
        self.rank, self.count = dist.get_rank(), dist.get_world_size()

    def everyone(self, part: Tensor) -> list[Tensor]:
        """What each process has, by rank; all of one shape."""
        parts = [torch.empty_like(part) for _ in range(self.count)]
        with _lost():
            dist.all_gather(parts, part)
        return parts

    def send(self, part: Tensor, to: int) -> None:
        """Send a tensor to one process, which receives it."""
        with _lost():
            dist.send(part, to)

    def receive(self, part: Tensor, sender: int) -> None:
        """Overwrite a tensor with what that process sends."""
        with _lost():
            dist.recv(part, sender)

    def broadcast(self, value: Value) -> Value:
        """What rank 0 passes, in every process."""
        values = [value]
        with _lost():
            dist.broadcast_object_list(values, 0)
        return values[0]


def peers() -> Peers:
    """All processes of this training; this one alone where `process_group` joined none."""
    return Processes() if dist.is_available() and dist.is_initialized() else ALONE


def rank() -> int:
    """Number of this process; 0 writes, validates and shows."""
    return peers().rank


def broadcast(value: Value) -> Value:
    """What rank 0 passes, in every process; in a single one, the value itself."""
    group = peers()
    return value if group.count == 1 else group.broadcast(value)  # type: ignore[attr-defined]


@contextmanager
def _lost() -> Iterator[None]:
    """Name what torch.distributed raises when a connection breaks."""
    try:
        yield
    except RuntimeError:
        raise LostProcessError from None
