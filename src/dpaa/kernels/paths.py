"""Counting walks of two steps: rows of a product of two 0/1 matrices, dense, a few at a time.

`R Rᵀ` says how many items two users share, `Rᵀ R` how many users two items share.  Neither fits memory as a whole; a
block of rows does, and it costs as many steps as there are walks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator

BLOCK_CELLS = 4_000_000
"""Cells of a dense block, and walks counted at once: some tens of megabytes."""


@dataclass(frozen=True)
class Adjacency:
    """Lists of columns, one per row (a 0/1 matrix in compressed rows)."""

    starts: Tensor
    """(rows + 1,) int64."""
    columns: Tensor
    """(entries,) int64."""

    @classmethod
    def of(cls, rows: Tensor, columns: Tensor, n_rows: int) -> Adjacency:
        """From entries whose rows ascend."""
        lengths = torch.bincount(rows, minlength=n_rows)
        return cls(torch.nn.functional.pad(lengths.cumsum(0), (1, 0)), columns)

    @property
    def lengths(self) -> Tensor:
        """(rows,) int64."""
        return self.starts.diff()

    def entries(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """All entries of these rows: which of `rows` each belongs to, and its column."""
        lengths = self.lengths[rows]
        owner = torch.repeat_interleave(lengths)
        within = torch.arange(len(owner), device=owner.device) - (lengths.cumsum(0) - lengths)[owner]
        return owner, self.columns[self.starts[rows][owner] + within]


def path_counts(first: Adjacency, rows: Tensor, second: Adjacency, n_columns: int) -> Tensor:
    """Rows of the product `first · second`: walks from each row to each column.  (len(rows), n_columns) float32."""
    owner, middle = first.entries(rows)
    walk, column = second.entries(middle)
    cells = torch.bincount(owner[walk] * n_columns + column, minlength=len(rows) * n_columns)
    return cells.view(len(rows), n_columns).float()


def path_blocks(first: Adjacency, second: Adjacency, n_columns: int) -> Iterator[Tensor]:
    """All rows of `first` in blocks that fit, by the cells of a dense block and by the walks to count."""
    n_rows = len(first.starts) - 1
    owner, middle = first.entries(torch.arange(n_rows, device=first.starts.device))
    walks = torch.zeros(n_rows, dtype=torch.int64, device=owner.device).index_add_(0, owner, second.lengths[middle])
    block = ((walks + n_columns).cumsum(0) - 1) // BLOCK_CELLS
    yield from torch.split(
        torch.arange(n_rows, device=owner.device), torch.unique(block, return_counts=True)[1].tolist()
    )
