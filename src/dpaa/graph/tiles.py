"""Tables in tiles of a few columns each, threads that share them, and sums over columns split over processes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import torch
from torch import Tensor

from dpaa.graph.kernels import Kernel, in_row_blocks

T = TypeVar("T")
UNIT = 16
"""Columns that are summed at once, and the fewest that a process may hold."""


class Columns:
    """All columns of a table, in this process; `columns.SharedColumns` are a part of them.

    A sum over columns is made of units of 16 columns, added in pairs, pairs of pairs and so on: a tree that does not
    depend on which process holds which columns.
    """

    alone: bool = True
    leads: bool = True
    _levels = 64

    def __init__(self, size: int) -> None:
        self.size, self.own = size, slice(0, size)

    @property
    def width(self) -> int:
        """Number of columns in this process."""
        return int(self.own.stop - self.own.start)

    def cut(self, whole: Tensor) -> Tensor:
        """This process's columns of an (n, size) table; a view."""
        return whole

    def joined(self, parts: Sequence[Tensor]) -> Tensor:
        """Add sums over this process's units as far as the tree allows: (few, …); one where it holds all columns."""
        parts = add_in_pairs(parts, self._levels)
        return torch.stack(parts) if len(parts) > 1 else parts[0][None]

    def over_all(self, joined: Tensor) -> Tensor:
        """Sum over all processes of what `joined` returned in each.  (…)."""
        return joined[0]

    def sum(self, parts: Sequence[Tensor]) -> Tensor:
        """Sum over all columns, from the sums over each unit of this process."""
        return self.over_all(self.joined(parts))

    def whole(self, rows: Tensor) -> Tensor:
        """Whole rows from this process's columns, differentiable.  (n, width) → (n, size)."""
        return rows

    def gathered(self, rows: Tensor) -> Tensor:
        """Whole rows from this process's columns, without gradient.  (n, width) → (n, size)."""
        return rows

    def to_leader(self, table: Tensor) -> Tensor:
        """The whole table in the process that leads, from each process's columns; empty elsewhere."""
        return table


def add_in_pairs(parts: Sequence[Tensor], levels: int = 64) -> list[Tensor]:
    """Add neighbours in pairs, so many times or until one is left."""
    sums = list(parts)
    while len(sums) > 1 and levels:
        pairs = [one + other for one, other in zip(sums[::2], sums[1::2], strict=False)]
        sums, levels = pairs + sums[2 * len(pairs) :], levels - 1
    return sums


def unit_sums(products: Tensor) -> list[Tensor]:
    """Sums over each unit of the columns.  (n, columns) → [(n,), …]."""
    # Units of a fixed width: how torch sums a row depends on its width, which differs between processes.
    n, full = len(products), products.shape[1] // UNIT * UNIT
    sums = list(products[:, :full].reshape(n, -1, UNIT).sum(dim=2).unbind(1)) if full else []
    if full < products.shape[1] or not n * products.shape[1]:
        sums.append(products[:, full:].sum(dim=1))
    return sums


@dataclass(frozen=True)
class TiledTable:
    """An (n, d) table stored as contiguous tiles of a few columns each."""

    tiles: tuple[Tensor, ...]

    @classmethod
    def from_dense(cls, dense: Tensor, width: int) -> TiledTable:
        """Cut a tensor into tiles.

        Parameters
        ----------
        dense : (n, d), copied
        width : most columns per tile

        Returns
        -------
        the table
        """
        return cls(
            tuple(tile.clone(memory_format=torch.contiguous_format) for tile in torch.split(dense, width, dim=1))
        )

    @cached_property
    def columns(self) -> list[slice]:
        """Where each tile's columns stand in a row of this table."""
        ends = itertools.accumulate(tile.shape[1] for tile in self.tiles)
        return [slice(end - tile.shape[1], end) for end, tile in zip(ends, self.tiles, strict=True)]

    def rows(self, nodes: slice = slice(None)) -> Tensor:
        """Copy whole rows.

        Parameters
        ----------
        nodes : indices or a slice; default all

        Returns
        -------
        (len(nodes), d)
        """
        return torch.cat([tile[nodes] for tile in self.tiles], dim=1)

    def copy_(self, dense: Tensor) -> None:
        """Overwrite the table.

        Parameters
        ----------
        dense : (n, d) new content
        """
        for tile, columns in zip(self.tiles, self.columns, strict=True):
            tile.copy_(dense[:, columns])


class Workers:
    """Threads that each take whole tiles.  No barrier inside a kernel, so a busy machine slows but never stalls them.

    Where there are fewer tiles than threads, several take the rows of one tile's products.  Neither a tile's arithmetic
    nor a row's depends on who does it: the number of workers changes no bit of the result.
    """

    def __init__(self, threads: int, n_tiles: int | None = None) -> None:
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="tile") if threads > 1 else None
        self._rows = threads // max(n_tiles or threads, 1)
        self._row_pool = ThreadPoolExecutor(threads, thread_name_prefix="rows") if self._rows > 1 else None

    def over_rows(self, multiply: Kernel) -> Kernel:
        """A product that threads which no tile needs take part in."""
        return multiply if self._row_pool is None else in_row_blocks(multiply, self._row_pool, self._rows)

    def map(self, work: Callable[[int], T], n_tiles: int) -> list[T]:
        """`[work(0), …, work(n_tiles − 1)]`, in parallel where there is more than one thread."""
        if self._pool is None or n_tiles == 1:
            return [work(tile) for tile in range(n_tiles)]
        return list(self._pool.map(work, range(n_tiles)))
