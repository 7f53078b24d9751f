"""LightGCN, the backbone, cut into hooks; every other method shows only its difference (He et al., SIGIR 2020)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar
from weakref import ref

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from dpaa.data.sampling import TripleSampler
from dpaa.errors import InputError
from dpaa.graph.bipartite import BipartiteGraph, EdgeWeights
from dpaa.graph.propagation import TILE_COLUMNS, Propagation, TiledTable, Workers, default_kernel
from dpaa.graph.selection import WHOLE_FROM, Selection
from dpaa.kernels.machine import cores, give_back_memory, lasting
from dpaa.methods.base import Histories, Method, Scorer, Vectors
from dpaa.methods.pretrained import Pretrained
from dpaa.methods.rows import GatheredRows, Rows
from dpaa.methods.settings import Settings, TrainedSettings

INITIAL_DEVIATION = 0.1
PROCESS_BYTES = 300_000_000
"""What Python and the libraries take before anything is trained."""
BUFFER_BYTES = 100_000_000
"""Blocks of scores and lists while ranking, the dial's curve, what the allocator keeps."""


@dataclass(frozen=True)
class Batch:
    """Triples: user, an item the user took, an item the user did not take; each (batch,) int64."""

    users: Tensor
    positive: Tensor
    negative: Tensor

    def __len__(self) -> int:
        return len(self.users)

    def nodes(self, n_users: int) -> Tensor:
        """The nodes whose rows the loss needs, in the order that `split` takes them apart.  (3 · batch,)."""
        return torch.cat([self.users, self.positive + n_users, self.negative + n_users])

    def split(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Rows of `nodes` as those of users, positive and negative items, each (batch, d)."""
        return torch.split(rows, len(self))


class LightGCN(Method):
    """Weighted sums over neighbours, mean of the layers, BPR + L2 on layer 0."""

    name: ClassVar[str] = "lightgcn"
    title: ClassVar[str] = "the plain backbone: mean of propagated embeddings, BPR loss"
    paper: ClassVar[str] = "He et al., LightGCN, SIGIR 2020"
    settings_type: ClassVar[type[Settings]] = TrainedSettings
    iterative: ClassVar[bool] = True
    grid: ClassVar[dict[str, tuple[object, ...]]] = {"learning_rate": (1e-5, 1e-4, 1e-3)}

    whole_from: ClassVar[float] = WHOLE_FROM
    """Share of the nodes in a batch from which on whole tables are worked on."""

    settings: TrainedSettings

    # ------------------------------------------------------------------ hooks: what a method may answer differently

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """What do we train on?  Triples of one epoch, from batch `start` on; a function of seed and epoch alone."""
        rng = np.random.default_rng([self.settings.seed, epoch])
        with lasting():
            triples = self.sampler.epoch(rng, self.settings.sampler)
        size = self.batch_size
        for first in range(start * size, len(triples[0]), size):
            parts = (torch.from_numpy(part[first : first + size]) for part in triples)
            yield Batch(*(part.to(self.device, torch.int64) for part in parts))

    def edge_weights(self, layer: int) -> EdgeWeights:
        """How loudly does each interaction speak at this layer?  `1/√(d_u d_i)`."""
        del layer
        return self._symmetric

    def initial_residual(self) -> float:
        """How much of layer 0 joins every later layer?  Nothing."""
        return 0.0

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """What is punished?  BPR on read-out rows plus L2 on layer-0 rows."""
        l2 = self.l2_term(batch, rows)  # first: the way back then ends with it, when the margins' memory is free
        return softplus(-rows.margins(len(batch))).mean() + l2

    def refresh(self, epoch: int) -> dict[str, Any]:
        """What is recomputed before an epoch?  Nothing.  What is returned joins the epoch's line of the history."""
        del epoch
        return {}

    def scorer(self, items: Tensor | None = None, histories: Histories | None = None) -> Scorer:
        """What do we rank by?  The inner product of read-out vectors."""
        vectors = self.readout_vectors(items, histories)
        return lambda index: vectors.queries(index) @ vectors.items.T

    def vectors(self, items: Tensor | None = None, histories: Histories | None = None) -> Vectors | None:
        """The read-out vectors; a method that ranks by anything else answers None."""
        return self.readout_vectors(items, histories)

    def readout_vectors(self, items: Tensor | None = None, histories: Histories | None = None) -> Vectors:
        """Read-out vectors of users (those of the histories, if given) and items."""
        table = self.item_embedding if items is None else self.item_embedding[items]
        users = self.user_embedding if histories is None else self.fold_in(histories)
        return Vectors(lambda index: users[index], table)

    # ------------------------------------------------------------------ the rest is the same for every method

    def __init__(self, graph: BipartiteGraph, settings: Settings) -> None:
        super().__init__(graph, settings)
        self.device = graph.edge_user.device
        self.user_embedding = torch.empty(0)
        self.item_embedding = torch.empty(0)
        self.item_message = torch.empty(0)
        self.keeps_last = False
        """Whether all epochs are trained and the last is kept, instead of the best on validation."""
        self._given_start: Tensor | None = None
        self._symmetric_while_held: Callable[[], EdgeWeights | None] = lambda: None

    @property
    def batch_size(self) -> int:
        """Triples per step, with `auto` resolved: at most about 500 batches an epoch, never below 2,048."""
        chosen = self.settings.batch_size
        return max(2048, -(-self.sampler.n_interactions // 500)) if chosen == "auto" else chosen

    @property
    def n_batches(self) -> int:
        """Batches of a full epoch."""
        return -(-self.sampler.n_interactions // self.batch_size)

    @property
    def kernel(self) -> str:
        """The sparse product in use, with `auto` resolved by the fixed rule."""
        chosen = self.settings.kernel
        return default_kernel(self.graph, self.settings.embedding_size) if chosen == "auto" else chosen

    @property
    def threads(self) -> int:
        """Threads that share the tiles, with `auto` resolved: one per core, at most one per tile."""
        tiles = -(-self.settings.embedding_size // TILE_COLUMNS[self.kernel])
        if self.device.type == "cuda":
            return 1
        return min(cores() if self.settings.threads == "auto" else self.settings.threads, tiles)

    @cached_property
    def sampler(self) -> TripleSampler:
        """Draws positive and negative items for this graph's users."""
        users, items = self.graph.edge_user.cpu().numpy(), self.graph.edge_item.cpu().numpy()
        counts = self.graph.edge_count.cpu().numpy().astype(np.int32)
        return self.sampler_type(users, items, counts, self.graph.n_users, self.graph.n_items)

    @property
    def sampler_type(self) -> type[TripleSampler]:
        """How negative items are drawn: uniformly."""
        return TripleSampler

    @property
    def _symmetric(self) -> EdgeWeights:
        """One object while anybody holds it (so layers share their weights), made again afterwards."""
        weights = self._symmetric_while_held()
        if weights is None:
            weights = self.graph.symmetric_weights()
            self._symmetric_while_held = ref(weights)
        return weights

    def start(self) -> None:
        """Draw the initial tables and put the first weights in force."""
        if self._given_start is not None:
            self.ego = TiledTable.from_dense(self._given_start, TILE_COLUMNS[self.kernel])
        else:
            self.ego = TiledTable.empty(
                self.graph.n_nodes, self.settings.embedding_size, TILE_COLUMNS[self.kernel], self.device
            )
            self.ego.normal_(INITIAL_DEVIATION, self.generator(0))
        self.propagation = Propagation(
            self.graph, self.settings.layers, self.kernel, Workers(self.threads), self.initial_residual()
        )
        self.set_weights()

    def start_from(self, table: Tensor) -> None:
        """Let training begin with these tables, users then items, instead of random ones.  (n_nodes, d)."""
        self._given_start = table

    def wants_pretrained(self) -> bool:
        """Whether a model trained before is needed; then `take_pretrained` is called before `start`."""
        return False

    def pretrained_layers(self) -> int:
        """How many layers beyond layer 0 of that model are needed."""
        return self.settings.layers

    def identity(self) -> dict[str, str]:
        """What else than data and settings a checkpoint must have been made with."""
        return {}

    def take_pretrained(self, pretrained: Pretrained) -> None:
        """Take what is needed of a model trained before."""
        raise NotImplementedError(f"{self.name} uses no pre-trained model")

    def generator(self, *stream: int) -> torch.Generator:
        """A torch generator that depends on the seed and the stream's numbers alone (on the CPU)."""
        state = np.random.SeedSequence([self.settings.seed, *stream, 0]).generate_state(1, np.uint64)[0]
        return torch.Generator().manual_seed(int(state >> np.uint64(1)))

    def set_weights(self) -> None:
        """Put the current answers of `edge_weights` in force."""
        self.propagation.set_weights([self.edge_weights(layer) for layer in range(self.settings.layers)])

    def parameters(self) -> dict[str, Tensor]:
        """Trainable tensors besides the ego table."""
        return {}

    def l2_term(self, batch: Batch, rows: Rows) -> Tensor:
        """`ρ₂ · ½ (‖E_u‖² + ‖E_i‖² + ‖E_j‖²) / B`."""
        return (self.settings.l2 / len(batch)) * rows.half_squares(3 * len(batch))  # a triple's nodes come first

    def forward(self, batch: Batch) -> Rows:
        """Propagate, and offer the batch's rows to the loss."""
        nodes = batch.nodes(self.graph.n_users)
        selection = Selection(self.graph, nodes, whole_from=self.whole_from)
        return GatheredRows(selection, nodes, *self.propagation.rows_of(self.ego, selection))

    def tile_gradient(self, rows: Rows, number: int) -> Tensor:
        """Gradient of the loss in one tile of the ego table, after `backward` on the loss."""
        assert isinstance(rows, GatheredRows)
        by_readout, by_ego = rows.gradients(number, self.ego.columns[number])
        return self.propagation.gradient_tile(rows.selection, by_readout, by_ego)

    @torch.no_grad()
    def update_embeddings(self) -> None:
        """Bring the vectors that `scorer` uses up to date with the tables."""
        self.drop_embeddings()
        self.user_embedding, self.item_embedding = self.propagation.dense_readout(self.ego)

    def drop_embeddings(self) -> None:
        """Let those vectors go, where nobody ranks by them for a while."""
        self.user_embedding = self.item_embedding = torch.empty(0)

    def finish(self) -> None:
        """After training: final vectors, and what an item says to users it has never met."""
        self.drop_embeddings()  # messages first: they need layers, vectors do not
        give_back_memory()
        self.item_message = self._item_messages()
        give_back_memory()
        self.update_embeddings()
        give_back_memory()

    def memory_bytes(self) -> int:
        """About what training takes: ego, two moments, best epoch and read-out, the graph, a block of scores."""
        tables = 5 * self.graph.n_nodes * self.settings.embedding_size * 4
        edges = self.graph.n_edges * (140 + 8 * self.settings.layers)  # graph, sampler and an epoch's triples
        batch = 12 * 3 * self.batch_size * self.settings.embedding_size * 4
        return tables + edges + batch + self.extra_memory_bytes() + PROCESS_BYTES + BUFFER_BYTES

    def extra_memory_bytes(self) -> int:
        """What a method takes beyond LightGCN."""
        return 0

    def state(self) -> dict[str, Tensor]:
        """Everything that training changes and the best epoch must bring back (copies)."""
        parameters = {f"parameter.{name}": tensor.detach().clone() for name, tensor in self.parameters().items()}
        return {"ego": self.ego.rows()} | parameters

    @torch.no_grad()
    def load_state(self, state: dict[str, Tensor]) -> None:
        """Take back what `state` gave."""
        self.ego.copy_(state["ego"])
        for name, tensor in self.parameters().items():
            tensor.copy_(state[f"parameter.{name}"])

    # ------------------------------------------------------------------ users unseen in training

    def sent_layers(self) -> Iterator[TiledTable]:
        """What the nodes send at layers 0..L−1 (and what they hold at the end): the layers themselves."""
        return self.propagation.layers(self.ego)

    def new_user_scale(self, history_length: Tensor) -> Tensor:
        """The new user's own part of a message's weight, `1/√d_u`.  Same shape as `history_length`."""
        return history_length.clamp(min=1).rsqrt()

    @torch.no_grad()
    def _item_messages(self) -> Tensor:
        """What item i adds to the read-out of a new user, but for `new_user_scale`: `Σ_l a_i^l e_i^l / (L + 1)`.

        `a_i^l` is the mean over the item's edges of the weight without the user's part: exact where a weight splits
        into a user's and an item's factor (LightGCN's does), the item's mean where it belongs to the pair.
        """
        graph, n_users = self.graph, self.graph.n_users
        total = torch.zeros(graph.n_items, self.settings.embedding_size, device=self.device)
        slots = torch.bincount(graph.edge_item, minlength=graph.n_items).clamp(min=1)
        without_user = self.new_user_scale(graph.user_degree).index_select(0, graph.edge_user).mul_(graph.edge_count)
        layers = self.sent_layers()

        def add(table: TiledTable, mean: Tensor) -> None:
            for tile, columns in zip(table.tiles, table.columns, strict=True):
                total[:, columns] += mean[:, None] * tile[n_users:]

        for layer in range(self.settings.layers):
            part = self.edge_weights(layer).to_user / without_user
            mean = torch.zeros(graph.n_items, device=self.device).index_add_(0, graph.edge_item, part) / slots
            add(next(layers), mean)  # no name is given to the layer: it can go while the next one is made
        return total.mul_(self.propagation.share)

    def fold_in(self, histories: Histories) -> Tensor:
        """Read-out vectors of unseen users: one aggregation over the known item vectors.  (users, d)."""
        if self.settings.layers == 0:
            raise InputError("a model with layers=0 cannot score users unseen in training; train with layers >= 1")
        users = torch.from_numpy(histories.pairs.user.astype(np.int64)).to(self.device)
        items = torch.from_numpy(histories.pairs.item.astype(np.int64)).to(self.device)
        length = torch.bincount(users, minlength=histories.n_users)
        total = torch.zeros(len(length), self.item_message.shape[1], device=self.device)
        total.index_add_(0, users, self.item_message[items])
        return total * self.new_user_scale(length.float())[:, None]

    # ------------------------------------------------------------------ what a run keeps

    @classmethod
    def tensor_shapes(cls, graph: BipartiteGraph, settings: Settings) -> dict[str, tuple[int, ...]]:
        """Ego tables, read-out tables and the messages for new users."""
        assert isinstance(settings, TrainedSettings)
        users, items = (graph.n_users, settings.embedding_size), (graph.n_items, settings.embedding_size)
        return {
            "user_ego": users,
            "item_ego": items,
            "user_embedding": users,
            "item_embedding": items,
            "item_message": items,
        }

    def tensors(self) -> dict[str, Tensor]:
        """Ego tables, read-out tables and the messages for new users."""
        return {
            "user_ego": self.ego.rows(slice(self.graph.n_users)),
            "item_ego": self.ego.rows(slice(self.graph.n_users, None)),
            "user_embedding": self.user_embedding,
            "item_embedding": self.item_embedding,
            "item_message": self.item_message,
        }

    def load_tensors(self, tensors: dict[str, Tensor]) -> None:
        """Ready to score: the read-out tables as they were saved."""
        dense = torch.cat([tensors["user_ego"], tensors["item_ego"]]).to(self.device)
        self.ego = TiledTable.from_dense(dense, TILE_COLUMNS[self.kernel])
        # Copies: a file's tensors lie anywhere, and a matrix product rounds differently on memory aligned differently.
        self.user_embedding = tensors["user_embedding"].to(self.device, copy=True)
        self.item_embedding = tensors["item_embedding"].to(self.device, copy=True)
        self.item_message = tensors["item_message"].to(self.device, copy=True)

    def item_vectors(self) -> Tensor:
        """Read-out vectors of the items."""
        return self.item_embedding

    def message_weights(self) -> list[tuple[str, Tensor]]:
        """`weight_0 … weight_{L−1}`, and `weight_back_…` where the way back differs."""
        columns = []
        for layer in range(self.settings.layers):
            weights = self.edge_weights(layer)
            columns.append((f"weight_{layer}", weights.to_user))
            if weights.to_item is not None:
                columns.append((f"weight_back_{layer}", weights.to_item))
        return columns
