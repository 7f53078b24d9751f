"""The rows a loss asks for: leaves of a small autograd graph, whose gradients go back into the tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from dpaa.graph.propagation import TiledTable


class Rows:
    """Read-out and ego rows on demand.

    Each call gathers rows (repeats included) as a leaf tensor.  After `loss.backward()`, `add_gradient` scatters the
    leaves' gradients into a tile, so the loss is free in form and autograd never sees a whole table.
    """

    def __init__(self, readout: TiledTable, ego: TiledTable, n_users: int) -> None:
        self._tables = {"readout": readout, "ego": ego}
        self._n_users = n_users
        self._leaves: dict[str, list[tuple[Tensor, Tensor]]] = {"readout": [], "ego": []}

    def users(self, index: Tensor) -> Tensor:
        """Read-out rows of these users, (len(index), d)."""
        return self._leaf("readout", index)

    def items(self, index: Tensor) -> Tensor:
        """Read-out rows of these items, (len(index), d)."""
        return self._leaf("readout", index + self._n_users)

    def ego_users(self, index: Tensor) -> Tensor:
        """Layer-0 rows of these users, (len(index), d)."""
        return self._leaf("ego", index)

    def ego_items(self, index: Tensor) -> Tensor:
        """Layer-0 rows of these items, (len(index), d)."""
        return self._leaf("ego", index + self._n_users)

    def _leaf(self, table: str, nodes: Tensor) -> Tensor:
        leaf = self._tables[table].rows(nodes).requires_grad_()
        self._leaves[table].append((nodes, leaf))
        return leaf

    def add_gradient(self, table: str, columns: slice, out: Tensor) -> None:
        """Add what the leaves of one table received, for the columns of one tile, to `out` (n_nodes, tile columns)."""
        for nodes, leaf in self._leaves[table]:
            if leaf.grad is not None:
                out.index_add_(
                    0, nodes, leaf.grad[:, columns].contiguous()
                )  # a strided source takes three times as long
