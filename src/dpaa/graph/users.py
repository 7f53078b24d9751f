"""Which users this process holds, with their interactions, and what it asks of those who hold the others.

The second axis along which a training is shared, beside `columns.Columns`: rows of users and their edges lie in one
process each, rows of items in all.  A hop makes the rows of users whole, and of each item's row the part that comes
from the users here; the parts are added up.  So the rows of items are sent, twice a layer, and nothing else of the size
of a table.

Parts are added in the order of the processes, in each of them: all hold the same bits of an item's row.  They are not
those of a single process, where the terms of a row are added one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpaa.errors import InputError
from dpaa.graph.columns import ALONE, Peers

SENT_ROWS = 65_536
"""Rows whose parts are exchanged at a time: what each process receives from all others is this much at most."""


@dataclass(frozen=True)
class Users:
    """The users of one process among all; consecutive ones."""

    bounds: tuple[int, ...]
    """Process r holds the users from the r-th bound to the next."""
    peers: Peers = field(default=ALONE, compare=False)

    @classmethod
    def balanced(cls, sizes: NDArray[np.int64], peers: Peers) -> Users:
        """So that each process has about as much: users take so much each, (n_users,)."""
        n = len(sizes)
        if peers.count > max(n, 1):
            raise InputError(f"{n:,} users cannot be shared by {peers.count} processes; use fewer parts of users")
        ends = np.cumsum(sizes)
        wanted = ends[-1] * np.arange(1, peers.count) / peers.count if n else np.zeros(0)
        cuts = np.searchsorted(ends, wanted, side="left") + 1
        # At least a user for each, however much the largest one takes.
        cuts = np.maximum.accumulate(np.maximum(cuts - np.arange(1, peers.count), 0)) + np.arange(1, peers.count)
        cuts = np.minimum(cuts, n - np.arange(peers.count - 1, 0, -1))
        return cls((0, *(int(cut) for cut in cuts), n), peers)

    @property
    def n(self) -> int:
        """How many there are in all."""
        return self.bounds[-1]

    @property
    def alone(self) -> bool:
        """Whether this process holds them all."""
        return self.peers.count == 1

    @property
    def leads(self) -> bool:
        """Whether whole tables are collected here."""
        return self.peers.rank == 0

    @property
    def own(self) -> slice:
        """The users of this process."""
        return slice(self.bounds[self.peers.rank], self.bounds[self.peers.rank + 1])

    @property
    def n_own(self) -> int:
        """How many those are."""
        return int(self.own.stop - self.own.start)

    # ------------------------------------------------------------------ rows of all users, then of items

    def cut(self, whole: Tensor) -> Tensor:
        """Rows of its own users, and whatever follows the users."""
        return whole if self.alone else torch.cat([whole[self.own], whole[self.n :]])

    def to_leader(self, table: Tensor) -> Tensor:
        """The whole table in the process that leads, from the rows of its own users and those that follow."""
        if self.alone:
            return table
        if not self.leads:
            self.peers.send(table[: self.n_own].contiguous(), 0)
            return table.new_empty(0)
        whole = table.new_empty(self.n + len(table) - self.n_own, *table.shape[1:])
        whole[self.own], whole[self.n :] = table[: self.n_own], table[self.n_own :]
        for rank in range(1, self.peers.count):
            first, last = self.bounds[rank : rank + 2]
            theirs = table.new_empty(last - first, *table.shape[1:])
            self.peers.receive(theirs, rank)
            whole[first:last] = theirs
        return whole

    # ------------------------------------------------------------------ sums over all users

    def add_up_(self, rows: Tensor) -> Tensor:
        """What comes from the users here becomes what comes from all of them, in place.  Returns the same."""
        if self.alone:
            return rows
        for part in torch.split(rows, SENT_ROWS):
            found = self.peers.everyone(part.contiguous())
            total = found[0]
            for theirs in found[1:]:
                total = total + theirs
            part.copy_(total)
        return rows

    def mean_over_nodes(self, values: Tensor) -> Tensor:
        """The mean over all users and items, from numbers of its own users and of all items.  A scalar."""
        if self.alone:
            return values.mean()
        total = self.add_up_(values[: self.n_own].sum()[None])[0] + values[self.n_own :].sum()
        return total / (self.n + len(values) - self.n_own)
