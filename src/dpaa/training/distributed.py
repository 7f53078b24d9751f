"""One training in several processes that `torchrun` started: each runs the same command and holds some columns.

    torchrun --nproc-per-node 2 -m dpaa train data/mine --out runs/wide

Propagation, its gradient, Adam and L2 work on each column alone, so every process trains some columns of the tables and
sends the others a few numbers per triple and nothing of the layers.  Rank 0 alone reads and writes run folders,
validates and shows; what it reads or decides is broadcast.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cached_property
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from dpaa.errors import InputError
from dpaa.graph.tiles import UNIT, Columns, add_in_pairs

Value = TypeVar("Value")
LONGEST_WAIT = timedelta(days=1)
"""For a validation by rank 0, or its training of a closed form; a process that died is noticed at once."""


@contextmanager
def _lost() -> Iterator[None]:
    """Name what torch.distributed raises when a connection breaks."""
    try:
        yield
    except RuntimeError:
        lost = "another process of this training was lost, perhaps for want of memory"
        raise InputError(f"{lost}; continue from the last checkpoint with the same command and --resume") from None


class Peers:
    """The processes that hold a part of the columns each, as one of them sees them; rank 0 leads.

    There is this one alone where `process_group` joined no others.
    """

    def __init__(self) -> None:
        joined = dist.is_available() and dist.is_initialized()
        self.rank, self.count = (dist.get_rank(), dist.get_world_size()) if joined else (0, 1)

    def everyone(self, part: Tensor) -> list[Tensor]:
        """Gather a tensor of equal shape from every process, by rank."""
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
        """Return what rank 0 passes, in every process; in a single one, the value itself."""
        values = [value]
        if self.count > 1:
            with _lost():
                dist.broadcast_object_list(values, 0)
        return values[0]


def split_columns(size: int, peers: Peers) -> Columns:
    """The columns that this process holds.

    Parameters
    ----------
    size : columns of the whole table
    peers : the processes

    Returns
    -------
    the part of the columns of this process

    Raises
    ------
    InputError : if there are more processes than units of columns
    """
    return Columns(size) if peers.count == 1 else SharedColumns(size, peers)


class SharedColumns(Columns):
    """The columns of one process among all columns of a table.

    A sum over columns is a tree of units that does not depend on which process holds which columns, so the number of
    processes changes no bit.  Whoever holds an aligned block of units sends one number for all of it.
    """

    alone = False

    def __init__(self, size: int, peers: Peers) -> None:
        super().__init__(size)
        self.peers, self.leads = peers, peers.rank == 0
        units = -(-size // UNIT)
        if peers.count > units:
            raise InputError(
                f"embedding_size {size} can be shared by at most {units} processes, {UNIT} columns each, got "
                f"{peers.count}; use fewer processes or a larger embedding_size"
            )
        self._bounds = [rank * units // peers.count for rank in range(peers.count + 1)]
        # How often units can be joined in pairs before a pair would lie in two processes.
        self._levels = min((bound & -bound).bit_length() - 1 for bound in self._bounds[1:-1])
        self.own = self._of(peers.rank)

    def _of(self, rank: int) -> slice:
        return slice(self._bounds[rank] * UNIT, min(self._bounds[rank + 1] * UNIT, self.size))

    @cached_property
    def _widths(self) -> list[int]:
        return [self._of(rank).stop - self._of(rank).start for rank in range(self.peers.count)]

    def cut(self, whole: Tensor) -> Tensor:
        """This process's columns of an (n, size) table; a view."""
        return whole[:, self.own]

    def over_all(self, joined: Tensor) -> Tensor:
        """Sum over all processes of what `joined` returned in each.  (…)."""
        step = 1 << self._levels
        few = [-(-(last - first) // step) for first, last in zip(self._bounds, self._bounds[1:], strict=False)]
        # `all_gather` needs one shape, and a process may hold a block of units less than another.
        if len(joined) < max(few):
            joined = torch.cat([joined, joined.new_zeros(max(few) - len(joined), *joined.shape[1:])])
        parts = [part for n, theirs in zip(few, self.peers.everyone(joined), strict=True) for part in theirs[:n]]
        return add_in_pairs(parts)[0]

    def whole(self, rows: Tensor) -> Tensor:
        """Whole rows from this process's columns, differentiable.  (n, width) → (n, size)."""
        return _Whole.apply(rows, self)  # type: ignore[no-any-return, no-untyped-call]

    def gathered(self, rows: Tensor) -> Tensor:
        """Whole rows from this process's columns, without gradient.  (n, width) → (n, size)."""
        widest = max(self._widths)
        if self.width < widest:
            rows = torch.cat([rows, rows.new_zeros(len(rows), widest - self.width)], dim=1)
        parts = self.peers.everyone(rows.contiguous())
        return torch.cat([part[:, :width] for part, width in zip(parts, self._widths, strict=True)], dim=1)

    def to_leader(self, table: Tensor) -> Tensor:
        """The whole table in the process that leads, from each process's columns; empty elsewhere."""
        if not self.leads:
            self.peers.send(table.contiguous(), 0)
            return table.new_empty(0)
        whole = table.new_empty(len(table), self.size)
        whole[:, self.own] = table
        # One after the other: beside its own, rank 0 holds the columns of one process, not of all.
        for rank in range(1, self.peers.count):
            theirs = table.new_empty(len(table), self._widths[rank])
            self.peers.receive(theirs, rank)
            whole[:, self._of(rank)] = theirs
        return whole


class _Whole(torch.autograd.Function):
    """All columns of rows; each process takes its own part of their gradient."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, columns: SharedColumns) -> Tensor:
        ctx.own = columns.own
        return columns.gathered(rows)

    @staticmethod
    def backward(ctx: Any, by_whole: Tensor) -> tuple[Tensor, None]:
        return by_whole[:, ctx.own].contiguous(), None


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


def peers() -> Peers:
    """All processes of this training; rank 0 writes, validates and shows."""
    return Peers()
