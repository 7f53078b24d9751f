"""The machinery behind the hooks, the same for every method on the graph: nothing here is overridden.

Two ways from table to loss and back: the fast one, written by hand over tiles of columns, and, where a method
`uses_whole_table`, automatic differentiation through its `readout`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from dpaa.data.sampling import TripleSampler
from dpaa.errors import InputError
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.graph.columns import Columns
from dpaa.graph.propagation import Propagation, TiledTable, Workers
from dpaa.graph.selection import WHOLE_FROM, Selection
from dpaa.kernels.machine import cores, give_back_memory, lasting
from dpaa.methods.base import Context, Histories, Vectors
from dpaa.methods.compute import Compute
from dpaa.methods.hooks import Hooks
from dpaa.methods.rows import Batch, GatheredRows, Rows, TableRows
from dpaa.methods.settings import Settings

INITIAL_DEVIATION = 0.1


class GraphMethod(Hooks):
    """Embeddings propagated over the graph of interactions, trained in epochs."""

    whole_from: ClassVar[float] = WHOLE_FROM
    """Share of the nodes in a batch from which on whole tables are worked on."""
    saved: ClassVar[dict[str, tuple[str | int, ...]]] = {
        "user_ego": ("users", "embedding_size"),
        "item_ego": ("items", "embedding_size"),
        "user_embedding": ("users", "embedding_size"),
        "item_embedding": ("items", "embedding_size"),
        "item_message": ("items", "embedding_size"),
    }

    def __init__(self, graph: BipartiteGraph, settings: Settings) -> None:
        super().__init__(graph, settings)
        self.user_embedding = self.item_embedding = self.item_message = torch.empty(0)
        self.parameters: dict[str, Tensor] = {}
        """Trainable tensors besides the ego table."""
        self.columns = Columns(getattr(settings, "embedding_size", 0))
        """Which columns of the tables are trained here."""
        self._collected: Tensor | None = None

    def train(self, context: Context) -> dict[str, Any]:
        """In epochs."""
        return context.epochs(self)

    @cached_property
    def compute(self) -> Compute:  # type: ignore[override]  # hooks see it as an attribute
        """How this training computes."""
        return Compute.of(self.graph, self.settings, self.sampler.n_interactions)

    @cached_property
    def sampler(self) -> TripleSampler:  # type: ignore[override]
        """Draws positive and negative items for this graph's users."""
        graph = self.graph
        users, items = graph.edge_user.cpu().numpy(), graph.edge_item.cpu().numpy()
        counts = graph.edge_count.cpu().numpy().astype(np.int32)
        made = self.sampler_type(users, items, counts, graph.n_users, graph.n_items)
        made.threads = cores() if self.settings.threads == "auto" else self.settings.threads
        return made

    def triples(self, epoch: int) -> tuple[Tensor, ...]:
        """Users, positive and negative items of an epoch."""
        rng = np.random.default_rng([self.settings.seed, epoch])
        with lasting():
            drawn = self.sampler.epoch(rng, self.settings.sampler)
        return tuple(torch.from_numpy(part).to(self.device) for part in drawn)

    def generator(self, *stream: int) -> torch.Generator:
        """A torch generator that depends on the seed and the stream's numbers alone (on the CPU)."""
        return torch.Generator().manual_seed(self._seed_of(*stream))

    def device_generator(self, *stream: int) -> torch.Generator:
        """The same on the device, for what is drawn again and again; another device draws other numbers."""
        return torch.Generator(device=self.device).manual_seed(self._seed_of(*stream))

    def _seed_of(self, *stream: int) -> int:
        state = np.random.SeedSequence([self.settings.seed, *stream, 0]).generate_state(1, np.uint64)[0]
        return int(state >> np.uint64(1))

    # ------------------------------------------------------------------ training

    def start(self, table: Tensor | None = None) -> None:
        """Draw the initial table (or take this one, users then items) and put the first weights in force."""
        width, columns = self.compute.tile_columns, self.columns
        if table is not None:
            self.ego = TiledTable.from_dense(self.cut(table).to(self.device), width)
        else:
            self.ego = TiledTable.empty(self.graph.n_nodes, columns.width, width, self.device)
            self.ego.normal_(INITIAL_DEVIATION, self.generator(0), columns)
        self.begin()
        workers = Workers(self.compute.threads, len(self.ego.tiles))
        self.propagation = Propagation(
            self.graph, self.settings.layers, self.compute.kernel, workers, self.initial_residual()
        )
        self.set_weights()
        self.parameters = {
            name: drawn.to(self.device).requires_grad_() for name, drawn in self.draw_parameters().items()
        }
        for name, parameter in self.parameters.items():
            setattr(self, name, parameter)

    def forward(self, batch: Batch) -> Rows:
        """Propagate, and offer the batch's rows to the loss."""
        nodes = batch.nodes(self.graph.n_users)
        if not self.uses_whole_table:
            selection = Selection(self.graph, nodes, whole_from=self.whole_from)
            return GatheredRows(selection, nodes, *self.propagation.rows_of(self.ego, selection), self.columns)
        selection = Selection(self.graph, nodes, whole_from=2.0)  # never: its rows are copies anyway
        table = self.ego.rows().requires_grad_()
        ego = [tile.detach() if selection.whole else tile.index_select(0, selection.nodes) for tile in self.ego.tiles]
        return TableRows(selection, nodes, self.readout(table, selection.nodes, batch), table, ego)

    def tile_gradient(self, rows: Rows, number: int) -> Tensor:
        """Gradient of the loss in one tile of the ego table, after `backward` on the loss."""
        return rows.tile_gradient(self.propagation, number, self.ego.columns[number])

    def state(self) -> dict[str, Tensor]:
        """Everything that training changes and the best epoch must bring back (copies)."""
        parameters = {f"parameter.{name}": tensor.detach().clone() for name, tensor in self.parameters.items()}
        return {"ego": self.ego.rows()} | parameters | self.extra_state()

    @torch.no_grad()
    def load_state(self, state: dict[str, Tensor]) -> None:
        """Take back what `state` gave."""
        self.ego.copy_(state["ego"])
        for name, tensor in self.parameters.items():
            tensor.copy_(state[f"parameter.{name}"])
        self.load_extra_state(state)

    # ------------------------------------------------------------------ where other processes hold other parts

    @property
    def alone(self) -> bool:
        """Whether this process holds whole tables."""
        return self.columns.alone

    def is_cut(self, name: str) -> bool:
        """Whether this part of the state is a table whose rows and columns may lie in several processes."""
        return name == "ego" or name.partition(".")[0] in self.cut_state

    def cut(self, whole: Tensor) -> Tensor:
        """What is trained here of a table of all users, then items."""
        return self.columns.cut(whole)

    def to_leader(self, table: Tensor) -> Tensor:
        """The whole table in the process that leads, from its part of it (or of the users' rows alone)."""
        return self.columns.to_leader(table)

    @torch.no_grad()
    def collect(self) -> None:
        """Collect whole tables in the process that leads, when training with others is over."""
        if self.alone:
            return
        found = {name: self.to_leader(tensor) if self.is_cut(name) else tensor for name, tensor in self.state().items()}
        if self.columns.leads:
            self.columns = Columns(self.columns.size)
            self.ego = TiledTable.from_dense(found["ego"], self.compute.tile_columns)
            self.load_state(found)

    @torch.no_grad()
    def load_parameters(self, known: dict[str, Tensor]) -> None:
        """Begin with these instead of those that were drawn, as far as they are known."""
        for name, tensor in known.items():
            self.parameters[name].copy_(tensor)

    # ------------------------------------------------------------------ vectors

    @torch.no_grad()
    def make_embeddings(self, with_messages: bool = False) -> None:
        """Bring the vectors that `scorer` uses up to date with the tables; at the end those for newcomers too."""
        self.drop_embeddings()
        if with_messages:  # first: they need layers, vectors do not
            give_back_memory()
            self.item_message = self.item_messages()
            give_back_memory()
        users, items = self.current_readout()
        self.user_embedding = self.to_leader(users)
        self.item_embedding = self.columns.to_leader(items)
        if self.ranks_by_ego and not self.alone:
            self._collected = self.to_leader(self.ego.rows())
        if with_messages:
            give_back_memory()

    @torch.no_grad()
    def current_readout(self) -> tuple[Tensor, Tensor]:
        """Read-out rows of users and of items, from the tables (or the columns here) as they are now."""
        if self.uses_whole_table:
            return self._split(self.readout(self.ego.rows(), None, None))
        return self.propagation.dense_readout(self.ego)

    def split_embeddings(self, readout: Tensor) -> None:
        """Read-out rows of all nodes become the vectors of users and of items."""
        self.user_embedding, self.item_embedding = self._split(readout)

    def _split(self, readout: Tensor) -> tuple[Tensor, Tensor]:
        n_users = self.graph.n_users
        return readout[:n_users].clone(), readout[n_users:].clone()

    def drop_embeddings(self) -> None:
        """Let those vectors go, where nobody ranks by them for a while."""
        self.user_embedding = self.item_embedding = torch.empty(0)
        self._collected = None

    def readout_vectors(self, items: Tensor | None = None, histories: Histories | None = None) -> Vectors:
        """Read-out vectors of users (those of the histories, if given) and items."""
        table = self.item_embedding if items is None else self.item_embedding.index_select(0, items)
        users = self.user_embedding if histories is None else self.fold_in(histories)
        return Vectors(lambda index: users[index], table)

    def item_vectors(self) -> Tensor:
        """Read-out vectors of the items."""
        return self.item_embedding

    @torch.no_grad()
    def item_messages(self) -> Tensor:
        """What item i adds to the read-out of a new user, but for `new_user_scale`: `Σ_l a_i^l e_i^l / (L + 1)`.

        `a_i^l` is the mean over the item's edges of the weight without the user's part: exact where a weight splits
        into a user's and an item's factor (LightGCN's does), the item's mean where it belongs to the pair.
        """
        n_users, layers = self.graph.n_users, self.sent_layers()
        total = torch.zeros(self.graph.n_items, self.settings.embedding_size, device=self.device)

        def add(table: TiledTable, mean: Tensor) -> None:
            for tile, columns in zip(table.tiles, table.columns, strict=True):
                total[:, columns] += mean[:, None] * tile[n_users:]

        for mean in self.mean_item_weights():
            add(next(layers), mean)  # no name is given to the layer: it can go while the next one is made
        return total.mul_(self.propagation.share)

    def mean_item_weights(self) -> Iterator[Tensor]:
        """`a_i^l` of layers 0..L−1, each (n_items,)."""
        graph = self.graph
        slots = torch.bincount(graph.edge_item, minlength=graph.n_items).clamp(min=1)
        without_user = self.new_user_scale(graph.user_degree).index_select(0, graph.edge_user).mul_(graph.edge_count)
        for layer in range(self.settings.layers):
            part = self.edge_weights(layer).to_user / without_user
            yield torch.zeros(graph.n_items, device=self.device).index_add_(0, graph.edge_item, part) / slots

    def fold_in(self, histories: Histories) -> Tensor:
        """Read-out vectors of unseen users: one aggregation over the known item vectors.  (users, d)."""
        if self.settings.layers == 0:
            raise InputError("a model with layers=0 cannot score users unseen in training; train with layers >= 1")
        pairs = histories.pairs
        users, items = (torch.from_numpy(part.astype(np.int64)).to(self.device) for part in (pairs.user, pairs.item))
        length = torch.bincount(users, minlength=histories.n_users)
        total = torch.zeros(len(length), self.item_message.shape[1], device=self.device)
        total.index_add_(0, users, self.item_message[items])
        return total * self.new_user_scale(length.float())[:, None]

    # ------------------------------------------------------------------ what a run keeps

    @property
    def user_ego(self) -> Tensor:
        """Layer-0 rows of the users."""
        return self._whole_ego(slice(self.graph.n_users))

    @property
    def item_ego(self) -> Tensor:
        """Layer-0 rows of the items."""
        return self._whole_ego(slice(self.graph.n_users, None))

    def _whole_ego(self, nodes: slice) -> Tensor:
        if self.alone:
            return self.ego.rows(nodes)
        if self._collected is None:
            raise RuntimeError(f"{self.name} ranks by layer 0, which lies in other processes: set ranks_by_ego")
        return self._collected[nodes]

    def load_tensors(self, tensors: dict[str, Tensor]) -> None:
        """Ready to score: the read-out tables as they were saved."""
        rest = dict(tensors)
        dense = torch.cat([rest.pop("user_ego"), rest.pop("item_ego")]).to(self.device)
        self.ego = TiledTable.from_dense(dense, self.compute.tile_columns)
        super().load_tensors(rest)

    def tensors_to_score(self) -> dict[str, Tensor]:
        """Whoever ranks by the read-out needs no layer 0."""
        found = self.tensors()
        egos = ("user_ego", "item_ego") if self.vectors() is not None else ()
        return {name: tensor for name, tensor in found.items() if name not in egos}

    def adopt(self, tensors: dict[str, Tensor]) -> None:
        """The read-out tables themselves; copies where layer 0 is among them, which is kept in tiles."""
        if "user_ego" in tensors:
            self.load_tensors(tensors)
        else:
            super().adopt(tensors)

    def message_weights(self) -> list[tuple[str, Tensor]]:
        """`weight_0 … weight_{L−1}`, and `weight_back_…` where the way back differs."""
        columns = []
        for layer in range(self.settings.layers):
            weights = self.edge_weights(layer)
            columns.append((f"weight_{layer}", weights.to_user))
            if weights.to_item is not None:
                columns.append((f"weight_back_{layer}", weights.to_item))
        return columns
