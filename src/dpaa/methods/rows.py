"""The rows a loss works on: a small autograd graph, whose leaves' gradients go back into the tables."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import torch

from dpaa.methods.losses import half_squares

if TYPE_CHECKING:
    from torch import Tensor


class Rows:
    """Read-out and ego rows of a batch's nodes, repeats included: all that a loss sees of the tables."""

    def __init__(self, readout: Tensor, ego: Tensor) -> None:
        self.readout = readout
        """(nodes, d)"""
        self._ego = ego

    @property
    def ego(self) -> Tensor:
        """Layer-0 rows, (nodes, d)."""
        return self._ego

    def half_squares(self, n: int) -> Tensor:
        """`½ Σ ‖row‖²` over the first n ego rows."""
        return half_squares(self.ego[:n])


class GatheredRows(Rows):
    """Rows gathered once for each distinct node.

    The distinct rows are the leaves of autograd; after `loss.backward()`, `add_gradient` writes what they received into
    a tile.  The loss is free in form, and autograd never sees a whole table.
    """

    def __init__(self, distinct: Tensor, place: Tensor, readout: Tensor, ego: Tensor) -> None:
        self._distinct, self._place = distinct, place
        self._leaves = {"readout": readout.requires_grad_(), "ego": ego.requires_grad_()}
        super().__init__(readout.index_select(0, place), ego)

    @cached_property
    def ego(self) -> Tensor:
        """Layer-0 rows, (nodes, d); gathered once, and only where a loss asks for them."""
        return self._ego.index_select(0, self._place)

    def half_squares(self, n: int) -> Tensor:
        """`½ Σ ‖row‖²` over the first n ego rows, each distinct one times its count."""
        counts = torch.bincount(self._place[:n], minlength=len(self._distinct)).to(self._ego.dtype)
        return half_squares(self._ego, counts)

    def add_gradient(self, table: str, columns: slice, out: Tensor) -> None:
        """Add what the leaf of a table received, for the columns of one tile, to `out` (n_nodes, tile columns)."""
        leaf = self._leaves[table]
        if leaf.grad is not None:
            # A strided source would take three times as long.
            out.index_add_(0, self._distinct, leaf.grad[:, columns].contiguous())


def distinct_nodes(nodes: Tensor, n_nodes: int) -> tuple[Tensor, Tensor]:
    """The distinct nodes, ascending, and the place of each node among them.  No sorting: one flag per node."""
    present = torch.zeros(n_nodes, dtype=torch.int32, device=nodes.device)
    present[nodes] = 1
    return present.nonzero().squeeze(1), (present.cumsum(0) - 1).index_select(0, nodes)
