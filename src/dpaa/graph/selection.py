"""Some nodes of a graph, and the matrix as seen from them: what a batch needs of the first and the last product."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from dpaa.graph.bipartite import BipartiteGraph

CUT_COST = 3
"""Copying a slot of the matrix costs about as much as so many slots in the product of one tile."""


@dataclass(frozen=True)
class RowBlock:
    """Rows of the matrix for the selected users, or for the selected items."""

    part: slice
    """Where these nodes stand among the selected ones."""
    indptr: Tensor
    """(rows + 1,) int32"""
    neighbours: Tensor
    """(slots,) int32"""
    slots: Tensor | slice
    """Where these rows' values stand among the matrix's."""
    wanted: Tensor | None
    """Which rows of the block are selected; None where all are."""

    def values(self, whole: Tensor) -> Tensor:
        """The block's part of the matrix's values.  (slots,)."""
        return whole[self.slots] if isinstance(self.slots, slice) else whole.index_select(0, self.slots)


class Selection:
    """Distinct nodes of a graph, ascending, and where every node stands among them."""

    def __init__(self, graph: BipartiteGraph, nodes: Tensor) -> None:
        self._graph = graph
        present = torch.zeros(graph.n_nodes, dtype=torch.bool, device=nodes.device)  # no sorting: one flag per node
        self.nodes = present.index_fill_(0, nodes, True).nonzero().squeeze(1)
        """(selected,) int64"""
        self.place = torch.full_like(present, len(self), dtype=torch.int32)
        """(n_nodes,) int32: place among the selected nodes, their number for all other nodes."""
        self.place.index_copy_(0, self.nodes, torch.arange(len(self), dtype=torch.int32, device=nodes.device))

    def __len__(self) -> int:
        return len(self.nodes)

    def renumbered_neighbours(self) -> Tensor:
        """The matrix's neighbours by their place: what multiplies a table of the selected rows and a row of zeros.

        The product is that with the whole table whose other rows are zero, but it reads a table that fits the cache.
        """
        return self.place.index_select(0, self._graph.neighbours)

    def rows(self, n_tiles: int) -> list[RowBlock]:
        """The rows of the selected nodes, users and items apart.

        Those rows alone are copied where that pays: a batch meets a small part of the users, but nearly all popular
        items, and with them most of the items' slots.
        """
        graph, n = self._graph, len(self)
        starts = graph.indptr.index_select(0, self.nodes)
        lengths = graph.indptr[1:].index_select(0, self.nodes).sub_(starts)
        ends = lengths.new_zeros(n + 1)  # as one copy of all selected rows would have them
        torch.cumsum(lengths, 0, out=ends[1:])
        split = int(torch.searchsorted(self.nodes, graph.n_users))
        blocks = []
        for part, first in ((slice(0, split), 0), (slice(split, n), graph.n_users)):
            begin = ends[part.start]
            n_slots = int(ends[part.stop] - begin)
            if CUT_COST * n_slots < n_tiles * (graph.n_edges - n_slots):
                indptr = ends[part.start : part.stop + 1] - begin
                slots = torch.repeat_interleave(starts[part] - indptr[:-1], lengths[part], output_size=n_slots)
                slots += torch.arange(n_slots, dtype=torch.int32, device=slots.device)
                blocks.append(RowBlock(part, indptr, graph.neighbours.index_select(0, slots), slots, None))
            else:
                blocks.append(self._side(part, first))
        return blocks

    def _side(self, part: slice, first: int) -> RowBlock:
        """All rows of the users (first = 0) or of the items."""
        graph = self._graph
        slots = slice(graph.n_edges, None) if first else slice(graph.n_edges)
        rows = slice(first, None) if first else slice(graph.n_users + 1)
        indptr = graph.indptr[rows] - graph.indptr[first]
        return RowBlock(part, indptr, graph.neighbours[slots], slots, self.nodes[part] - first)
