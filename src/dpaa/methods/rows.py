"""The rows a loss works on: leaves of a small autograd graph, whose gradients go back into the tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


class Rows:
    """Read-out and ego rows of a batch's nodes (repeats included), as leaf tensors.

    After `loss.backward()`, `add_gradient` scatters what the leaves received into a tile, so the loss is free in form
    and autograd never sees a whole table.
    """

    def __init__(self, nodes: Tensor, readout: Tensor, ego: Tensor) -> None:
        self._nodes = nodes
        self.readout = readout.requires_grad_()
        """(nodes, d)"""
        self.ego = ego.requires_grad_()
        """(nodes, d): layer 0"""

    def add_gradient(self, leaf: Tensor, columns: slice, out: Tensor) -> None:
        """Add what a leaf received, for the columns of one tile, to `out` (n_nodes, tile columns)."""
        if leaf.grad is not None:
            # A strided source would take three times as long.
            out.index_add_(0, self._nodes, leaf.grad[:, columns].contiguous())
