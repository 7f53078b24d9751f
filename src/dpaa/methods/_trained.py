"""Creating, saving and scoring with the tables of a graph method: everything outside its training steps.

The tables are made, kept and scored with: initial numbers, state, read-out vectors, and what items send to users unseen
in training.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Self, cast

import numpy as np
import torch
from torch import Tensor

from dpaa._machine import cores, give_back_memory
from dpaa.errors import InputError
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.graph.propagation import Propagation
from dpaa.graph.tiles import Columns, TiledTable, Workers
from dpaa.methods._options import Compute, TrainingOptions, initial_table
from dpaa.methods.base import Histories, Shapes, Vectors, fitted
from dpaa.methods.samplers import TripleSampler

if TYPE_CHECKING:
    from dpaa.methods.graph_method import GraphMethod, WholeTable
    from dpaa.methods.tables import Tables


class BaseTables:
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
    def start(cls, method: GraphMethod, table: Tensor | None = None, columns: Columns | None = None) -> Self:
        """Make a method's tables, ready for the first step.

        Parameters
        ----------
        method : attached to a graph
        table : (n_nodes, d) initial layer 0, users then items; drawn by default
        columns : which columns this process holds, all by default

        Returns
        -------
        the tables, also in `method.tables`
        """
        compute, graph, columns = method.compute, method.graph, columns or Columns(method.embedding_size)
        width = compute.tile_columns
        if table is not None:
            ego = TiledTable.from_dense(columns.cut(table).to(graph.device), width)
        else:
            deviation, size = method.initial_deviation, method.embedding_size
            drawn = (1.0 if deviation == "xavier" else deviation, method.generator(0), graph.device)
            ego = initial_table(graph.n_nodes, columns, width, *drawn)
            # Scaled after the draw, since users and items differ in their deviation and share one stream of numbers.
            for tile in ego.tiles if deviation == "xavier" else ():
                for rows in (tile[: graph.n_users], tile[graph.n_users :]):
                    rows *= (2.0 / (len(rows) + size)) ** 0.5
        tables = cls(method, ego, columns)
        method.tables = cast("Tables", tables)
        method.begin()  # before the weights below, which it may decide
        # As many as tiles and rows can use; where other processes hold columns, this one has fewer tiles.
        workers = Workers(compute.threads, len(ego.tiles))
        tables.propagation = Propagation(graph, method.layers, compute.kernel, workers, method.residual_share())
        tables.set_weights()
        for name, drawn_parameter in method.parameters().items():
            tables.parameters[name] = drawn_parameter.to(graph.device).requires_grad_()
            setattr(method, name, tables.parameters[name])
        return tables

    @cached_property
    def sampler(self) -> TripleSampler:
        """Draws positive and negative items of the graph's users."""
        graph, threads = self.graph, self.method.threads
        users, items = graph.edge_user.cpu().numpy(), graph.edge_item.cpu().numpy()
        counts = graph.edge_count.cpu().numpy().astype(np.int32)
        sampler = self.method.sampler_type(users, items, counts, graph.n_users, graph.n_items)
        sampler.threads = cores() if threads == "auto" else threads
        return sampler

    def set_weights(self) -> None:
        """Apply the method's current edge weights."""
        if self.method._static_weights:
            self.propagation.set_weights([self.method.edge_weights(layer) for layer in range(self.method.layers)])

    # ------------------------------------------------------------------ state

    def snapshot(self) -> dict[str, Tensor]:
        """Copies of everything that training changes."""
        parameters = {f"parameter.{name}": tensor.detach().clone() for name, tensor in self.parameters.items()}
        return {"ego": self.ego.rows()} | parameters | self.method.extra_state()

    @torch.no_grad()
    def restore(self, state: dict[str, Tensor]) -> None:
        """Restore what `snapshot` returned."""
        self.ego.copy_(state["ego"])
        self.load_parameters({name: state[f"parameter.{name}"] for name in self.parameters})
        self.method.load_extra_state(state)

    @torch.no_grad()
    def load_parameters(self, known: dict[str, Tensor]) -> None:
        """Overwrite parameters with these values."""
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
            return self.split(cast("WholeTable", self.method).table_readout(self.ego.rows(), None))
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
        return self.ego.rows(nodes) if self._collected is None else self._collected[nodes]

    @torch.no_grad()
    def item_messages(self) -> Tensor:
        """Compute what item i adds to a new user's read-out but for `new_user_scale`: `Σ_l a_i^l e_i^l / (L + 1)`.

        `a_i^l` is the mean over the item's edges of the weight without the user's factor: exact where a weight is a
        product of a user's and an item's factor (LightGCN's is), the item's mean where it belongs to the pair.
        """
        n_users, layers = self.graph.n_users, self.method.sent_layers()
        total = torch.zeros(self.graph.n_items, self.method.embedding_size, device=self.graph.device)

        def add(table: TiledTable, mean: Tensor) -> None:
            for tile, columns in zip(table.tiles, table.columns, strict=True):
                total[:, columns] += mean[:, None] * tile[n_users:]

        for mean in self.mean_item_weights():
            add(next(layers), mean)  # the layer has no name, so it is freed while the next one is computed
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
        """Columns of `edges.parquet`: `weight_0 … weight_{L−1}`, and `weight_back_…` where user → item differs."""
        columns = []
        for layer in range(self.method.layers):
            weights = self.method.edge_weights(layer)
            columns.append((f"weight_{layer}", weights.to_user))
            if weights.to_item is not None:
                columns.append((f"weight_back_{layer}", weights.to_item))
        return columns


class TrainedMethod(TrainingOptions):
    """Scoring of a trained `GraphMethod`: read-out vectors, also for users unseen in training."""

    saved: ClassVar[Shapes] = {"user_ego": ("users", "embedding_size"), "item_ego": ("items", "embedding_size")}
    _changed_by_training: ClassVar[tuple[str, ...]] = ()
    """Attributes that a checkpoint keeps besides tables and parameters."""
    tables: BaseTables = fitted()
    compute: Compute = fitted()
    user_embedding: Tensor = fitted("users", "embedding_size")
    """Read-out vectors; empty between validations."""
    item_embedding: Tensor = fitted("items", "embedding_size")
    item_message: Tensor = fitted("items", "embedding_size")
    """What an item contributes to a user unseen in training."""

    def _attach(self, graph: BipartiteGraph) -> None:
        super()._attach(graph)
        self.user_embedding = self.item_embedding = self.item_message = torch.empty(0)

    def finish(self) -> None:
        """Compute what `scorer` needs, once the best epoch is restored."""
        self.tables.update_embeddings(with_messages=True)

    def vectors(self, items: Tensor | None = None, histories: Histories | None = None) -> Vectors | None:
        """Read-out vectors."""
        return self.readout_vectors(items, histories)

    def readout_vectors(self, items: Tensor | None = None, histories: Histories | None = None) -> Vectors:
        """Return the read-out vectors of users and items.

        Parameters
        ----------
        items : item indices; None = all
        histories : users unseen in training, instead of the training users

        Returns
        -------
        vectors whose inner products are the scores
        """
        table = self.item_embedding if items is None else self.item_embedding.index_select(0, items)
        users = self.user_embedding if histories is None else self._fold_in(histories)
        return Vectors(lambda index: users[index], table)

    def item_vectors(self) -> Tensor:
        """Read-out vectors of the items."""
        return self.item_embedding

    def sent_layers(self) -> Iterator[TiledTable]:
        """Compute what nodes send at layers 0 … L−1 (and hold at the end): the layers themselves.

        Returns
        -------
        one (n_nodes, d) table after the other, L + 1 in all
        """
        return self.tables.propagation.layers(self.tables.ego)

    def new_user_scale(self, history_length: Tensor) -> Tensor:
        """Compute a new user's own factor of a message's weight: `1/√d_u`.

        Parameters
        ----------
        history_length : (users,) items per user

        Returns
        -------
        (users,) factors
        """
        return history_length.clamp(min=1).rsqrt()

    def _fold_in(self, histories: Histories) -> Tensor:
        """Read-out vectors of unseen users: one aggregation over the known item vectors.  (users, d)."""
        if self.layers == 0:
            raise InputError("a model with layers=0 cannot score users unseen in training; train with layers >= 1")
        pairs, device = histories.pairs, self.graph.device
        users, items = (torch.from_numpy(part.astype(np.int64)).to(device) for part in (pairs.user, pairs.item))
        length = torch.bincount(users, minlength=histories.n_users)
        total = torch.zeros(len(length), self.item_message.shape[1], device=device)
        total.index_add_(0, users, self.item_message[items])
        return total * self.new_user_scale(length.float())[:, None]

    def extra_state(self) -> dict[str, Tensor]:
        """Copy what training changes besides tables and parameters, for checkpoints and the best epoch.

        Returns
        -------
        name → tensor
        """
        return {name: getattr(self, name).clone() for name in self._changed_by_training}

    def load_extra_state(self, state: dict[str, Tensor]) -> None:
        """Restore what `extra_state` returned.

        Parameters
        ----------
        state : what `extra_state` returned
        """
        for name in self._changed_by_training:
            setattr(self, name, state[name].clone())

    def _tiled(self, dense: Tensor) -> TiledTable:
        """A dense (n, d) table in the tiles that this method computes with."""
        return TiledTable.from_dense(dense.to(self.graph.device), self.compute.tile_columns)

    def _attribute(self, name: str) -> str:
        return f"tables.{name}" if name in ("user_ego", "item_ego") else super()._attribute(name)
