"""Co-occurrence counts: blocks of dense rows of `A Bᵀ` for 0/1 matrices.

`R Rᵀ` counts the items two users share, `Rᵀ R` the users two items share.  Neither fits memory as a whole; a
block of rows does.  The block is made dense and multiplied by the sparse kernel: thirty times faster than following
every pair of entries.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dpaa.graph.kernels import bag

BLOCK_ROWS = 128
BLOCK_CELLS = 4_000_000
"""At most so many rows at once, and cells of a dense block (16 MB)."""


@dataclass(frozen=True)
class Lists:
    """Lists of distinct columns, one per row: a 0/1 matrix in compressed rows."""

    starts: Tensor
    """(rows + 1,) int64."""
    columns: Tensor
    """(entries,) int64."""
    n_columns: int

    @classmethod
    def of(cls, rows: Tensor, columns: Tensor, n_rows: int, n_columns: int) -> Lists:
        """Make lists from entries whose rows ascend.

        Parameters
        ----------
        rows, columns : (entries,) indices
        n_rows, n_columns : sizes of the matrix

        Returns
        -------
        a list of columns per row
        """
        lengths = torch.bincount(rows, minlength=n_rows)
        return cls(torch.nn.functional.pad(lengths.cumsum(0), (1, 0)), columns, n_columns)

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> Tensor:
        """(rows,) int64."""
        return self.starts.diff()

    def positions(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Locate all entries of some rows.

        Parameters
        ----------
        rows : (n,) row indices

        Returns
        -------
        which of `rows` each entry belongs to, and its position in `columns`, (entries,) each
        """
        lengths = self.lengths[rows]
        owner = torch.repeat_interleave(lengths)
        within = torch.arange(len(owner), device=owner.device) - (lengths.cumsum(0) - lengths)[owner]
        return owner, self.starts[rows][owner] + within

    def entries(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """List all entries of some rows.

        Parameters
        ----------
        rows : (n,) row indices

        Returns
        -------
        which of `rows` each entry belongs to, and its column, (entries,) each
        """
        owner, position = self.positions(rows)
        return owner, self.columns[position]


def row_blocks(rows: Tensor, one: Lists, other: Lists) -> tuple[Tensor, ...]:
    """Split rows of `one` into blocks whose dense form, and whose `in_common` with `other`, are small.

    Parameters
    ----------
    rows : (n,) row indices of `one`
    one, other : the lists to be compared

    Returns
    -------
    parts of `rows`, in order
    """
    return torch.split(rows, max(1, min(BLOCK_ROWS, BLOCK_CELLS // max(one.n_columns, len(other), 1))))


def in_common(one: Lists, rows: Tensor, other: Lists, weight: Tensor | None = None) -> Tensor:
    """Count how many columns rows of `one` share with each row of `other`.

    Parameters
    ----------
    one : lists of distinct columns
    rows : (n,) row indices of `one`
    other : lists over the same columns
    weight : (columns,) what a common column counts; 1 by default

    Returns
    -------
    (n, len(other)) float32 counts
    """
    ones = torch.ones(len(other.columns), device=rows.device)
    counts = []
    for block in row_blocks(rows, one, other):
        owner, column = one.entries(block)
        # Transposed: the kernel gathers rows, and what the lists of `other` have in common with these are
        # columns.
        dense = torch.zeros(one.n_columns, len(block), device=rows.device)
        dense[column, owner] = 1.0 if weight is None else weight[column]
        counts.append(bag(other.starts, other.columns, ones, dense).T)
    return torch.cat(counts)


LARGEST_BITMAP = 256 * 1024 * 1024
"""Bytes."""


class KnownPairs:
    """Looks keys `user · n_items + item` up: in a bitmap of all pairs where it is small, else among the sorted keys.

    Parameters
    ----------
    keys : (known,) int64, ascending and distinct
    n_pairs : n_users · n_items
    largest_bitmap : bytes
    """

    def __init__(self, keys: Tensor, n_pairs: int, largest_bitmap: int = LARGEST_BITMAP) -> None:
        self._keys = keys
        self._bits: Tensor | None = None
        if n_pairs // 8 < largest_bitmap:
            bit = (1 << (keys & 7)).to(torch.uint8)  # distinct keys: adding bits sets them
            self._bits = torch.zeros(n_pairs // 8 + 1, dtype=torch.uint8, device=keys.device)
            self._bits.index_add_(0, keys >> 3, bit)

    def contain(self, wanted: Tensor) -> Tensor:
        """Tell which keys are known; a negative one never is.

        Parameters
        ----------
        wanted : int64 keys of any shape

        Returns
        -------
        bool of the same shape
        """
        if self._bits is None:
            # Keys beyond the last one are compared with it, and differ.
            index = torch.searchsorted(self._keys, wanted).clamp_(max=len(self._keys) - 1)
            return self._keys[index] == wanted
        flat = wanted.clamp(min=0).flatten()
        bits = self._bits.index_select(0, flat >> 3).bitwise_right_shift((flat & 7).to(torch.uint8)) & 1
        return bits.view(wanted.shape).bool() & (wanted >= 0)
