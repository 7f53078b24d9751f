"""The trained tables of a graph method: from a batch to the rows of its loss, and back to gradients.

There are two ways: gradients written by hand over tiles of columns, and, for `WholeTable` methods, automatic
differentiation through the method's `table_readout`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor

from dpaa._machine import cores, give_back_memory, processes_here
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.graph.columns import Columns
from dpaa.graph.kernels import most_blocks
from dpaa.graph.propagation import Propagation, Selection, TiledTable, Workers, default_kernel, tile_width
from dpaa.methods.rows import Batch, Rows, TableRows
from dpaa.methods.samplers import TripleSampler

if TYPE_CHECKING:
    from dpaa.methods.graph_method import GraphMethod, WholeTable

INITIAL_DEVIATION = 0.1
"""Standard deviation of the initial embeddings."""


@dataclass(frozen=True)
class Compute:
    """How a training computes, with every `auto` resolved; the manifest keeps it."""

    device: torch.device
    kernel: str
    threads: int
    batch_size: int
    n_batches: int
    """Batches of a full epoch."""
    tile_columns: int
    """Columns per tile: what the cache of a processor holds; all of them on a GPU."""

    @classmethod
    def of(cls, graph: BipartiteGraph, method: GraphMethod) -> Compute:
        """Resolve a method's hyperparameters on a graph."""
        size, n_interactions = method.embedding_size, int(graph.edge_count.sum(dtype=torch.float64))
        kernel = default_kernel(graph, size) if method.kernel == "auto" else method.kernel
        width = tile_width(kernel, size, graph.device)
        threads = max(1, cores() // processes_here()) if method.threads == "auto" else method.threads
        tiles = -(-size // width)
        threads = 1 if graph.device.type == "cuda" else min(threads, tiles * most_blocks(2 * graph.n_edges))
        batch = max(2048, -(-n_interactions // 500)) if method.batch_size == "auto" else method.batch_size
        return cls(graph.device, kernel, threads, batch, -(-n_interactions // batch), width)

    def as_json(self) -> dict[str, object]:
        """Entries of the manifest."""
        names = ("kernel", "tile_columns", "threads", "batch_size")
        return {"device": str(self.device)} | {name: getattr(self, name) for name in names}


class Tables:
    """Layer 0 in tiles of columns, the propagation over it, and what is trained besides.

    Parameters
    ----------
    method : whose hooks are called
    ego : layer 0, users then items
    columns : which columns of the whole table these are, where other processes hold the rest
    """

    def __init__(self, method: GraphMethod, ego: TiledTable, columns: Columns | None = None) -> None:
        self.method, self.graph, self.ego = method, method.graph, ego
        self.columns = columns or Columns(method.embedding_size)
        self.parameters: dict[str, Tensor] = {}
        """Trained tensors besides the table."""
        self.propagation: Propagation
        self._collected: Tensor | None = None

    @classmethod
    def start(cls, method: GraphMethod, table: Tensor | None = None, columns: Columns | None = None) -> Tables:
        """Draw the initial table (or take this one, users then items), set the first weights, draw parameters."""
        compute, graph, columns = method.compute, method.graph, columns or Columns(method.embedding_size)
        if table is not None:
            ego = TiledTable.from_dense(columns.cut(table).to(graph.device), compute.tile_columns)
        else:
            ego = TiledTable.empty(graph.n_nodes, columns.width, compute.tile_columns, graph.device)
            ego.normal_(INITIAL_DEVIATION, method.generator(0), columns)
        made = method.tables = cls(method, ego, columns)
        method.begin()
        workers = Workers(compute.threads, len(ego.tiles))
        made.propagation = Propagation(graph, method.layers, compute.kernel, workers, method.residual_share())
        made.set_weights()
        made.parameters = {name: drawn.to(graph.device).requires_grad_() for name, drawn in method.parameters().items()}
        for name, parameter in made.parameters.items():
            setattr(method, name, parameter)
        return made

    @cached_property
    def sampler(self) -> TripleSampler:
        """Draws positive and negative items of the graph's users."""
        graph, threads = self.graph, self.method.threads
        users, items = graph.edge_user.cpu().numpy(), graph.edge_item.cpu().numpy()
        counts = graph.edge_count.cpu().numpy().astype(np.int32)
        made = self.method.sampler_type(users, items, counts, graph.n_users, graph.n_items)
        made.threads = cores() if threads == "auto" else threads
        return made

    def set_weights(self) -> None:
        """Apply the method's current edge weights."""
        if self.method._static_weights:
            self.propagation.set_weights([self.method.edge_weights(layer) for layer in range(self.method.layers)])

    # ------------------------------------------------------------------ one step

    def forward(self, batch: Batch) -> Rows:
        """Propagate, and gather the batch's rows for the loss."""
        method, nodes = self.method, batch.nodes(self.graph.n_users)
        if not method._whole_table:
            selection = Selection(self.graph, nodes, whole_from=method._whole_from)
            return Rows(selection, nodes, *self.propagation.rows_of(self.ego, selection), self.columns)
        selection = Selection(self.graph, nodes, whole_from=2.0)  # never whole: its rows are copies anyway
        table = self.ego.rows().requires_grad_()
        ego = [tile.index_select(0, selection.nodes) for tile in self.ego.tiles]
        readout = cast("WholeTable", method).table_readout(table, selection.nodes, batch)
        return TableRows(selection, nodes, readout, table, ego)

    def tile_gradient(self, rows: Rows, number: int) -> Tensor:
        """Gradient of the loss in one tile of layer 0, after `backward` on the loss."""
        return rows.tile_gradient(self.propagation, number, self.ego.columns[number])

    # ------------------------------------------------------------------ state

    def snapshot(self) -> dict[str, Tensor]:
        """Copies of everything that training changes."""
        parameters = {f"parameter.{name}": tensor.detach().clone() for name, tensor in self.parameters.items()}
        return {"ego": self.ego.rows()} | parameters | self.method.extra_state()

    @torch.no_grad()
    def restore(self, state: dict[str, Tensor]) -> None:
        """Restore what `snapshot` returned."""
        self.ego.copy_(state["ego"])
        for name, tensor in self.parameters.items():
            tensor.copy_(state[f"parameter.{name}"])
        self.method.load_extra_state(state)

    @torch.no_grad()
    def load_parameters(self, known: dict[str, Tensor]) -> None:
        """Begin with these values instead of those that were drawn."""
        for name, tensor in known.items():
            self.parameters[name].copy_(tensor)

    def is_cut(self, name: str) -> bool:
        """Whether this part of the state is a table whose columns may lie in several processes."""
        return name == "ego" or name.partition(".")[0] in self.method._cut_state

    @torch.no_grad()
    def collect(self) -> None:
        """Collect whole tables in the process that leads, when training with others is over."""
        if self.columns.alone:
            return
        whole = {
            name: self.columns.to_leader(tensor) if self.is_cut(name) else tensor
            for name, tensor in self.snapshot().items()
        }
        if self.columns.leads:
            self.columns = Columns(self.columns.size)
            self.ego = TiledTable.from_dense(whole["ego"], self.method.compute.tile_columns)
            self.restore(whole)

    # ------------------------------------------------------------------ vectors

    @torch.no_grad()
    def update_embeddings(self, with_messages: bool = False) -> None:
        """Compute the read-out vectors of the current tables; at the end also what new users receive from items."""
        self.drop_embeddings()
        if with_messages:  # first: they need layers, vectors do not
            give_back_memory()
            self.method.item_message = self.item_messages()
            give_back_memory()
        users, items = self.readout()
        self.method.user_embedding, self.method.item_embedding = map(self.columns.to_leader, (users, items))
        if self.method._ranks_by_ego and not self.columns.alone:
            self._collected = self.columns.to_leader(self.ego.rows())
        if with_messages:
            give_back_memory()

    def drop_embeddings(self) -> None:
        """Free the read-out vectors while nothing ranks by them."""
        self.method.user_embedding = self.method.item_embedding = torch.empty(0)
        self._collected = None

    @torch.no_grad()
    def readout(self) -> tuple[Tensor, Tensor]:
        """Read-out rows of users and of items, of the columns held here."""
        if self.method._whole_table:
            return self.split(cast("WholeTable", self.method).table_readout(self.ego.rows(), None, None))
        return self.propagation.dense_readout(self.ego)

    def split(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Copies of the rows of users and of items."""
        n_users = self.graph.n_users
        return rows[:n_users].clone(), rows[n_users:].clone()

    @property
    def user_ego(self) -> Tensor:
        """Layer-0 rows of the users."""
        return self._whole_ego(slice(self.graph.n_users))

    @property
    def item_ego(self) -> Tensor:
        """Layer-0 rows of the items."""
        return self._whole_ego(slice(self.graph.n_users, None))

    def _whole_ego(self, nodes: slice) -> Tensor:
        if self.columns.alone:
            return self.ego.rows(nodes)
        if self._collected is None:
            raise RuntimeError(f"{self.method.name} ranks by layer 0, which lies in other processes: set _ranks_by_ego")
        return self._collected[nodes]

    @torch.no_grad()
    def item_messages(self) -> Tensor:
        """What item i adds to the read-out of a new user, but for `new_user_scale`: `Σ_l a_i^l e_i^l / (L + 1)`.

        `a_i^l` is the mean over the item's edges of the weight without the user's factor: exact where a weight is a
        product of a user's and an item's factor (LightGCN's is), the item's mean where it belongs to the pair.
        """
        n_users, layers = self.graph.n_users, self.method.sent_layers()
        total = torch.zeros(self.graph.n_items, self.method.embedding_size, device=self.graph.device)

        def add(table: TiledTable, mean: Tensor) -> None:
            for tile, columns in zip(table.tiles, table.columns, strict=True):
                total[:, columns] += mean[:, None] * tile[n_users:]

        for mean in self.mean_item_weights():
            add(next(layers), mean)  # the layer has no name, so it is freed while the next one is made
        return total.mul_(self.propagation.share)

    def mean_item_weights(self) -> Iterator[Tensor]:
        """`a_i^l` of layers 0..L−1, each (n_items,)."""
        graph, method = self.graph, self.method
        slots = torch.bincount(graph.edge_item, minlength=graph.n_items).clamp(min=1)
        without_user = method.new_user_scale(graph.user_degree).index_select(0, graph.edge_user).mul_(graph.edge_count)
        for layer in range(method.layers):
            part = method.edge_weights(layer).to_user / without_user
            yield torch.zeros(graph.n_items, device=graph.device).index_add_(0, graph.edge_item, part) / slots

    def edge_columns(self) -> list[tuple[str, Tensor]]:
        """Columns of `edges.parquet`: `weight_0 … weight_{L−1}`, and `weight_back_…` where the way back differs."""
        columns: list[tuple[str, Any]] = []
        for layer in range(self.method.layers):
            weights = self.method.edge_weights(layer)
            columns.append((f"weight_{layer}", weights.to_user))
            if weights.to_item is not None:
                columns.append((f"weight_back_{layer}", weights.to_item))
        return columns
