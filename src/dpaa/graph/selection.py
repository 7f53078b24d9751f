"""Some nodes of a graph, and the matrix as seen from them: what a batch needs of the first and the last product."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dpaa.graph.bipartite import BipartiteGraph
from dpaa.kernels.add_rows import add_rows_

CUT_COST = 3
"""Copying a slot of the matrix costs about as much as so many slots in the product of one tile."""
ROUND_NODES, ROUND_SLOTS = 128, 65_536
"""No batch has as many nodes as the last one.  Tensors of ever new sizes leave holes in memory that grow for minutes (a
fifth of it on a graph of 935,000 pairs); rounded up, sizes return and so does the memory."""

WHOLE_FROM = 0.6
"""Share of the nodes from which on all are selected."""


@dataclass(frozen=True)
class RowBlock:
    """Rows of the matrix for the selected users, for the selected items, or for all nodes."""

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
        return whole[self.slots] if isinstance(self.slots, slice) else _taken(whole, self.slots)


class Selection:
    """Distinct nodes of a graph, ascending, and where every node stands among them.

    A few nodes that nobody asked for are among them, to make their number round; no gradient ever reaches those.  Where
    most nodes are asked for, all are selected: to work on whole tables is quicker than to gather and to scatter.
    """

    def __init__(
        self,
        graph: BipartiteGraph,
        nodes: Tensor,
        round_to: int = ROUND_NODES,
        whole_from: float = WHOLE_FROM,
    ) -> None:
        self._graph = graph
        if whole_from <= 0:  # nothing is counted: on a GPU the program would wait for the number
            self._take_all(nodes.device)
            return
        present = torch.zeros(graph.n_nodes, dtype=torch.bool, device=nodes.device)  # no sorting: one flag per node
        asked = int(present.index_fill_(0, nodes, True).sum())
        self.whole = asked >= whole_from * graph.n_nodes
        """Whether all nodes are selected."""
        if self.whole:
            self._take_all(nodes.device)
            return
        wanted = min(-(-asked // round_to) * round_to, graph.n_nodes)
        if wanted > asked:  # looked for among the first nodes: a list of all that are left would have a new size again
            others = present[: 32 * round_to].logical_not().nonzero().squeeze(1)
            present.index_fill_(0, others[: wanted - asked], True)
        self.nodes = present.nonzero().squeeze(1)
        """(selected,) int64"""
        self.place = torch.full_like(present, len(self), dtype=torch.int32)
        """(n_nodes,) int32: place among the selected nodes, their number for all other nodes."""
        self.place.index_copy_(0, self.nodes, torch.arange(len(self), dtype=torch.int32, device=nodes.device))

    def _take_all(self, device: torch.device) -> None:
        self.whole = True
        self.nodes = torch.arange(self._graph.n_nodes, device=device)
        self.place = self.nodes.int()

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def n_users(self) -> int:
        """How many of the selected nodes are users; they come first."""
        if self.whole:
            return self._graph.n_users
        return int(torch.searchsorted(self.nodes, self._graph.n_users))

    def add_(self, table: Tensor, rows: Tensor) -> Tensor:
        """Add rows of the selected nodes into a table of all; returns the table."""
        return table.add_(rows) if self.whole else add_rows_(table, self.nodes, rows)

    def renumber_neighbours(self, out: Tensor) -> Tensor:
        """The matrix's neighbours by their place: what multiplies a table of the selected rows and a row of zeros.

        The product is that with the whole table whose other rows are zero, but it reads a table that fits the cache.
        """
        return torch.index_select(self.place, 0, self._graph.neighbours, out=out)

    def rows(self, n_tiles: int) -> list[RowBlock]:
        """The rows of the selected nodes, users and items apart.

        Those rows alone are copied where that pays: a batch meets a small part of the users, but nearly all popular
        items, and with them most of the items' slots.
        """
        graph, n = self._graph, len(self)
        if self.whole:
            return [RowBlock(slice(n), graph.indptr, graph.neighbours, slice(None), None)]
        starts = graph.indptr.index_select(0, self.nodes)
        lengths = graph.indptr[1:].index_select(0, self.nodes).sub_(starts)
        ends = lengths.new_zeros(n + 1)  # as one copy of all selected rows would have them
        torch.cumsum(lengths, 0, out=ends[1:])
        split = self.n_users
        blocks = []
        for part, first in ((slice(0, split), 0), (slice(split, n), graph.n_users)):
            begin = ends[part.start]
            n_slots = int(ends[part.stop] - begin)
            if CUT_COST * n_slots < n_tiles * (graph.n_edges - n_slots):
                indptr = ends[part.start : part.stop + 1] - begin
                slots = _with_room(starts, n_slots)
                torch.arange(n_slots, dtype=torch.int32, device=slots.device, out=slots)
                slots += torch.repeat_interleave(starts[part] - indptr[:-1], lengths[part], output_size=n_slots)
                blocks.append(RowBlock(part, indptr, _taken(graph.neighbours, slots), slots, None))
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


def _with_room(like: Tensor, n: int) -> Tensor:
    """An array of n with undefined content, at the beginning of memory of a round size."""
    return like.new_empty(-(-n // ROUND_SLOTS) * ROUND_SLOTS)[:n]


def _taken(values: Tensor, slots: Tensor) -> Tensor:
    return torch.index_select(values, 0, slots, out=_with_room(values, len(slots)))
