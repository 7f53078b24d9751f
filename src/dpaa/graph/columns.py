"""Which columns of the tables this process holds, and what it asks the others for: sums over columns, and whole rows.

Propagation, its gradient, Adam and L2 work on each column alone, so the columns of a table may lie in several processes
that tell each other a few numbers per triple and nothing of the layers.

A sum over columns is made of units of 16 columns, joined in pairs, then pairs of pairs and so on: a tree that does not
depend on who holds which columns, so that the number of processes changes no bit.  Who holds an aligned block of units
sends one number for all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import torch
from torch import Tensor

from dpaa.errors import InputError

UNIT = 16
"""Columns whose sum is made in one go, and the fewest that a process may hold; fewer would not pay either."""


class Peers(Protocol):
    """The processes that hold a part each, as one of them sees them; rank 0 leads."""

    rank: int
    count: int

    def everyone(self, part: Tensor) -> list[Tensor]:
        """What each has, by rank; all of one shape."""

    def send(self, part: Tensor, to: int) -> None:
        """Hand over to one, who receives."""

    def receive(self, part: Tensor, sender: int) -> None:
        """Overwrite with what that one sends."""


class Alone:
    """One process that holds everything."""

    rank, count = 0, 1

    def everyone(self, part: Tensor) -> list[Tensor]:
        """Its own."""
        return [part]

    def send(self, part: Tensor, to: int) -> None:
        """There is nobody."""
        raise NotImplementedError

    def receive(self, part: Tensor, sender: int) -> None:
        """There is nobody."""
        raise NotImplementedError


ALONE = Alone()


@dataclass(frozen=True)
class Columns:
    """The columns of one process among all columns of a table."""

    size: int
    """How many there are."""
    peers: Peers = field(default=ALONE, compare=False)

    def __post_init__(self) -> None:
        units = -(-self.size // UNIT)
        if self.peers.count > max(units, 1):
            raise InputError(
                f"embedding_size {self.size} can be shared by at most {units} processes, {UNIT} columns each, got "
                f"{self.peers.count}; use fewer processes or a larger embedding_size"
            )

    @property
    def alone(self) -> bool:
        """Whether this process holds them all."""
        return self.peers.count == 1

    @property
    def leads(self) -> bool:
        """Whether whole tables are collected here."""
        return self.peers.rank == 0

    @cached_property
    def _bounds(self) -> list[int]:
        """In units: process r holds those from the r-th bound to the next."""
        units = -(-self.size // UNIT)
        return [rank * units // self.peers.count for rank in range(self.peers.count + 1)]

    def of(self, rank: int) -> slice:
        """The columns of a process."""
        return slice(self._bounds[rank] * UNIT, min(self._bounds[rank + 1] * UNIT, self.size))

    @property
    def own(self) -> slice:
        """The columns of this process."""
        return self.of(self.peers.rank)

    @property
    def width(self) -> int:
        """How many those are."""
        return int(self.own.stop - self.own.start)

    def cut(self, whole: Tensor) -> Tensor:
        """Its own columns of an (n, size) table; a view."""
        return whole if self.alone else whole[:, self.own]

    # ------------------------------------------------------------------ sums over all columns

    @cached_property
    def _levels(self) -> int:
        """How often units can be joined in pairs before a pair would lie in two processes."""
        inner = self._bounds[1:-1]
        return min([(bound & -bound).bit_length() - 1 for bound in inner], default=64)

    def joined(self, parts: Sequence[Tensor]) -> Tensor:
        """Sums over its own units become the few that others need, (few, …); one where it holds all columns."""
        found = list(parts)
        for _ in range(self._levels):
            if len(found) == 1:
                break
            found = _paired(found)
        return torch.stack(found) if len(found) > 1 else found[0][None]

    def over_all(self, joined: Tensor) -> Tensor:
        """What `joined` gave here and elsewhere, added up.  (…)."""
        found = [joined[0]] if self.alone else self._from_everyone(joined)
        while len(found) > 1:
            found = _paired(found)
        return found[0]

    def sum(self, parts: Sequence[Tensor]) -> Tensor:
        """The sum over all columns, from the sums over each of its own units.  The shape of a part."""
        return self.over_all(self.joined(parts))

    def _from_everyone(self, joined: Tensor) -> list[Tensor]:
        step = 1 << self._levels
        few = [-(-(last - first) // step) for first, last in zip(self._bounds, self._bounds[1:], strict=False)]
        if len(joined) < max(few):
            joined = torch.cat([joined, joined.new_zeros(max(few) - len(joined), *joined.shape[1:])])
        return [part for n, theirs in zip(few, self.peers.everyone(joined), strict=True) for part in theirs[:n]]

    # ------------------------------------------------------------------ whole rows

    def whole(self, rows: Tensor) -> Tensor:
        """Whole rows from its own columns of them, differentiable.  (n, width) → (n, size)."""
        return rows if self.alone else _Whole.apply(rows, self)  # type: ignore[no-untyped-call]

    def gathered(self, rows: Tensor) -> Tensor:
        """The same, for those who need no gradient."""
        widths = [self.of(rank).stop - self.of(rank).start for rank in range(self.peers.count)]
        if self.width < max(widths):
            rows = torch.cat([rows, rows.new_zeros(len(rows), max(widths) - self.width)], dim=1)
        found = self.peers.everyone(rows.contiguous())
        return torch.cat([part[:, :width] for part, width in zip(found, widths, strict=True)], dim=1)

    def to_leader(self, table: Tensor) -> Tensor:
        """The whole table in the process that leads, from its own columns of it; empty elsewhere."""
        if self.alone:
            return table
        if not self.leads:
            self.peers.send(table.contiguous(), 0)
            return table.new_empty(0)
        whole = table.new_empty(len(table), self.size)
        whole[:, self.own] = table
        for rank in range(1, self.peers.count):
            columns = self.of(rank)
            theirs = table.new_empty(len(table), columns.stop - columns.start)
            self.peers.receive(theirs, rank)
            whole[:, columns] = theirs
        return whole


def unit_sums(products: Tensor) -> list[Tensor]:
    """Sums over each unit of the columns.  (n, columns) → [(n,), …]."""
    n, full = len(products), products.shape[1] // UNIT * UNIT
    found: list[Tensor] = []
    if full:
        found += products[:, :full].reshape(n, -1, UNIT).sum(dim=2).unbind(1)
    if full < products.shape[1] or not n * products.shape[1]:
        found.append(products[:, full:].sum(dim=1))
    return found


def _paired(parts: list[Tensor]) -> list[Tensor]:
    pairs = [one + other for one, other in zip(parts[::2], parts[1::2], strict=False)]
    return pairs + parts[2 * len(pairs) :]


class _Whole(torch.autograd.Function):
    """All columns of rows; of their gradient everybody takes the part that is his own."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, columns: Columns) -> Tensor:
        ctx.own = columns.own
        return columns.gathered(rows)

    @staticmethod
    def backward(ctx: Any, by_whole: Tensor) -> tuple[Tensor, None]:
        return by_whole[:, ctx.own].contiguous(), None
