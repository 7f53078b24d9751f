"""Propagation over the graph, column tile by column tile, with its gradient written by hand.

    h^0 = E,   h^(l+1) = A_l h^l + δ E,   read-out = mean of h^0 … h^L

is linear in E, so the gradient is the same pass backwards with transposed matrices (Horner's rule) and no automatic
differentiation ever holds a layer.  Every step works on each column alone, so a table here may be some columns of one
whose other columns lie in other processes (`graph.columns`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from threading import Lock

import torch
from torch import Tensor

from dpaa.graph._layers import WholeLayers
from dpaa.graph.bipartite import BipartiteGraph, EdgeWeights
from dpaa.graph.kernels import KERNELS, add_rows_
from dpaa.graph.tiles import TiledTable, Workers


@dataclass
class Propagation(WholeLayers):
    """The linear map from the ego table to layers and read-out, with weights that may change between epochs.

    Parameters
    ----------
    graph : the edges
    n_layers : L
    kernel : sparse product, `bag`, `wide-bag` or `csr`
    workers : threads that share tiles of columns
    residual : δ, share of layer 0 added to every later layer
    """

    graph: BipartiteGraph
    n_layers: int
    kernel: str = "bag"
    workers: Workers = field(default_factory=lambda: Workers(1))
    residual: float = 0.0

    def __post_init__(self) -> None:
        self.share = 1.0 / (self.n_layers + 1)  # of each layer in the read-out
        self._multiply = self.workers.over_rows(KERNELS[self.kernel])
        self._values: list[Tensor] = []
        self._transposed: list[Tensor] = []
        self._renumbered = self.graph.neighbours.new_empty(0)
        self._renumbered_for: Selection | None = None
        self._renumbering = Lock()

    def set_weights(self, weights: Sequence[EdgeWeights]) -> None:
        """Apply edge weights.

        Parameters
        ----------
        weights : those of layers 0 … L−1; layers that share an object share the memory
        """
        # By object: LightGCN's layers share one, whose slots are then arranged, and held, once.
        distinct = {id(layer): layer for layer in weights}
        values = {key: self.graph.slot_values(layer) for key, layer in distinct.items()}
        back = {
            key: values[key] if layer.to_item is None else self.graph.slot_values(layer.transposed)
            for key, layer in distinct.items()
        }
        self._values = [values[id(layer)] for layer in weights]
        self._transposed = [back[id(layer)] for layer in weights]

    def _hop(self, values: Tensor, tile: Tensor) -> Tensor:
        return self._multiply(self.graph.indptr, self.graph.neighbours, values, tile)

    def _layers_of_tile(self, ego: Tensor, values_of_layers: list[Tensor]) -> Iterator[Tensor]:
        layer = ego
        yield layer
        for values in values_of_layers:
            layer = self._hop(values, layer)
            if self.residual:
                layer.add_(ego, alpha=self.residual)
            yield layer

    @torch.no_grad()
    def rows_of(self, ego: TiledTable, selection: Selection) -> tuple[Tensor, list[Tensor]]:
        """Compute read-out rows of the selected nodes; of the last layer only these rows are computed.

        Parameters
        ----------
        ego : (n_nodes, d) layer 0
        selection : the nodes

        Returns
        -------
        (selected, d) read-out, and layer-0 rows tile by tile (the tiles themselves where all nodes are selected)
        """
        nodes = selection.nodes
        blocks = selection.rows(len(ego.tiles)) if self.n_layers else []
        last = [(block, block.values(self._values[-1])) for block in blocks]
        readout = ego.tiles[0].new_empty(len(selection), ego.columns[-1].stop)

        def work(number: int) -> Tensor:
            layers = self._layers_of_tile(ego.tiles[number], self._values[:-1])
            layer = next(layers)
            first = layer.detach() if selection.whole else layer.index_select(0, nodes)
            # δ E of the last layer, which the products with a few of its rows leave out.
            total = first * (1.0 + self.residual) if last and self.residual else first
            for layer in layers:
                total = total + layer if selection.whole else layer.index_select(0, nodes).add_(total)
            if total is first:
                total = first.clone()
            for block, values in last:
                total[block.part].add_(self._hop_rows(block, values, layer))
            torch.mul(total, self.share, out=readout[:, ego.columns[number]])
            return first

        return readout, self.workers.map(work, len(ego.tiles))

    def _hop_rows(self, block: _RowBlock, values: Tensor, tile: Tensor) -> Tensor:
        product = self._multiply(block.indptr, block.neighbours, values, tile)
        return product if block.wanted is None else product.index_select(0, block.wanted)

    @torch.no_grad()
    def gradient_tile(self, selection: Selection, by_readout: Tensor, by_ego: Tensor) -> Tensor:
        """Compute the gradient in a tile of E from those in the selected rows of the read-out and of E itself.

            x_L = g,   x_(l−1) = A_(l−1)ᵀ x_l + g,   gradient = x_0 + δ (x_1 + … + x_L),   g = by_readout / (L + 1)

        g has the selected rows alone and is nowhere written out to the size of the table.

        Parameters
        ----------
        selection : the nodes
        by_readout, by_ego : (selected, tile columns) both gradients

        Returns
        -------
        (n_nodes, tile columns)
        """
        n = len(selection)
        padded = by_readout.new_empty(n + 1, by_readout.shape[1])
        padded[n].zero_()  # the row of all nodes that are not selected
        own = torch.mul(by_readout, self.share, out=padded[:n])
        if not self.n_layers:
            table = own.new_zeros(self.graph.n_nodes, own.shape[1])
            return table.index_copy_(0, selection.nodes, own + by_ego)
        neighbours = self._neighbours_in(selection)
        by_layer = self._multiply(self.graph.indptr, neighbours, self._transposed[-1], padded)
        by_residual: Tensor | None = None  # x_1 + … + x_(L−1)
        for values in reversed(self._transposed[:-1]):
            selection.add_(by_layer, own)
            if self.residual:
                by_residual = by_layer if by_residual is None else by_residual.add_(by_layer)
            by_layer = self._hop(values, by_layer)
        if by_residual is not None:
            by_layer.add_(by_residual, alpha=self.residual)
        return selection.add_(by_layer, torch.add(by_ego, own, alpha=1.0 + self.residual))

    def _neighbours_in(self, selection: Selection) -> Tensor:
        """Neighbours by their index in the selection: they multiply the selected rows and a row of zeros.

        The product is that with the whole table whose other rows are zero, but it reads a table that fits the cache.
        One array for all tiles, in the same memory for every batch.
        """
        if selection.whole:
            return self.graph.neighbours
        # Whichever tile comes first renumbers for all; the others wait for what they would compute again.
        with self._renumbering:
            if self._renumbered_for is not selection:
                torch.index_select(selection.index, 0, self.graph.neighbours, out=self._renumbered)
                self._renumbered_for = selection
            return self._renumbered


CUT_COST = 3
"""Copying a slot of the matrix costs about as much as so many slots in the product of one tile."""
ROUND_NODES, ROUND_SLOTS = 128, 65_536
"""No batch has as many nodes as the last one.  Tensors of ever new sizes leave holes in memory that grow for minutes (a
fifth of it on a graph of 935,000 pairs); rounded up, sizes return and so does the memory."""

WHOLE_FROM = 0.6
"""Share of the nodes from which on all are selected."""


@dataclass(frozen=True)
class _RowBlock:
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
    """Distinct nodes of a graph, ascending, and the index of every node among them.

    A few further nodes are among them, to make their number round; no gradient ever reaches those.  Where
    most nodes are wanted, all are selected: to work on whole tables is quicker than to gather and to scatter.
    """

    def __init__(
        self, graph: BipartiteGraph, nodes: Tensor, round_to: int = ROUND_NODES, whole_from: float = WHOLE_FROM
    ) -> None:
        self._graph = graph
        present = torch.zeros(graph.n_nodes, dtype=torch.bool, device=nodes.device)  # no sorting: one flag per node
        wanted = int(present.index_fill_(0, nodes, True).sum())
        self.whole = wanted >= whole_from * graph.n_nodes
        """Whether all nodes are selected."""
        if self.whole:
            self.nodes = torch.arange(graph.n_nodes, device=nodes.device)
            self.index = self.nodes.int()
            return
        missing = min(-(-wanted // round_to) * round_to, graph.n_nodes) - wanted
        if missing:  # searched among the first nodes: a list of all that are left would have a new size again
            others = present[: 32 * round_to].logical_not().nonzero().squeeze(1)
            present.index_fill_(0, others[:missing], True)
        self.nodes = present.nonzero().squeeze(1)
        """(selected,) int64"""
        self.index = torch.full_like(present, len(self), dtype=torch.int32)
        """(n_nodes,) int32: index of a node among the selected ones, their number for all other nodes."""
        self.index.index_copy_(0, self.nodes, torch.arange(len(self), dtype=torch.int32, device=nodes.device))

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

    def rows(self, n_tiles: int) -> list[_RowBlock]:
        """The rows of the selected nodes, users and items apart.

        Those rows alone are copied where that pays: a batch meets a small part of the users, but nearly all popular
        items, and with them most of the items' slots.
        """
        graph, n = self._graph, len(self)
        if self.whole:
            return [_RowBlock(slice(n), graph.indptr, graph.neighbours, slice(None), None)]
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
                slots = _rounded(starts, n_slots)
                torch.arange(n_slots, dtype=torch.int32, device=slots.device, out=slots)
                slots += torch.repeat_interleave(starts[part] - indptr[:-1], lengths[part], output_size=n_slots)
                blocks.append(_RowBlock(part, indptr, _taken(graph.neighbours, slots), slots, None))
            else:
                blocks.append(self._side(part, first))
        return blocks

    def _side(self, part: slice, first: int) -> _RowBlock:
        """All rows of the users (first = 0) or of the items."""
        graph = self._graph
        slots = slice(graph.n_edges, None) if first else slice(graph.n_edges)
        rows = slice(first, None) if first else slice(graph.n_users + 1)
        indptr = graph.indptr[rows] - graph.indptr[first]
        return _RowBlock(part, indptr, graph.neighbours[slots], slots, self.nodes[part] - first)


def _rounded(like: Tensor, n: int) -> Tensor:
    """An array of n with undefined content, at the beginning of memory of a round size."""
    return like.new_empty(-(-n // ROUND_SLOTS) * ROUND_SLOTS)[:n]


def _taken(values: Tensor, slots: Tensor) -> Tensor:
    return torch.index_select(values, 0, slots, out=_rounded(values, len(slots)))
