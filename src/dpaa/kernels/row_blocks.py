"""A sparse product in blocks of rows, for more threads than there are tiles of columns.

A row of the product is made by one thread from start to end, so the number of blocks changes no bit.  Inside
`embedding_bag` torch's own threads cost twice the processor time.
"""

from __future__ import annotations

from concurrent.futures import Executor

import torch
from torch import Tensor

from dpaa.kernels.spmm import Kernel

LEAST_SLOTS = 100_000
"""Of the matrix in a block: below, handing it to a thread costs more than it saves."""


def most_blocks(slots: int) -> int:
    """Into how many blocks a matrix of so many slots may be cut."""
    return max(1, slots // LEAST_SLOTS)


def in_row_blocks(multiply: Kernel, pool: Executor, most: int) -> Kernel:
    """The same product, of at most so many blocks of rows at once, with about as many slots of the matrix each."""

    def product(indptr: Tensor, neighbours: Tensor, weights: Tensor, embeddings: Tensor) -> Tensor:
        blocks = min(most, most_blocks(len(neighbours)))
        if blocks < 2:
            return multiply(indptr, neighbours, weights, embeddings)
        wanted = torch.arange(1, blocks, dtype=torch.int64) * len(neighbours) // blocks
        cuts = torch.searchsorted(indptr, wanted.to(indptr.dtype)).tolist()
        bounds = [0, *cuts, len(indptr) - 1]

        def part(number: int) -> Tensor:
            first, last = bounds[number], bounds[number + 1]
            slots = slice(int(indptr[first]), int(indptr[last]))
            starts = indptr[first : last + 1] - indptr[first]
            return multiply(starts, neighbours[slots], weights[slots], embeddings)

        return torch.cat(list(pool.map(part, range(blocks))))

    return product
