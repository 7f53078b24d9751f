"""The questions a method on the graph answers.  Each has LightGCN's answer; a method overrides what it changes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import softplus

from dpaa.data.sampling import TripleSampler
from dpaa.graph.bipartite import EdgeWeights
from dpaa.graph.propagation import Propagation, TiledTable
from dpaa.methods.base import Histories, Method, Scorer, Vectors
from dpaa.methods.compute import Compute
from dpaa.methods.pretrained import Pretrained
from dpaa.methods.rows import Batch, Rows
from dpaa.methods.settings import Settings, TrainedSettings


class Hooks(Method):
    """What we train on, how messages flow, what is punished and what we rank by."""

    settings_type: ClassVar[type[Settings]] = TrainedSettings
    grid: ClassVar[dict[str, tuple[object, ...]]] = {"learning_rate": (1e-5, 1e-4, 1e-3)}
    uses_whole_table: ClassVar[bool] = False
    """Whether layers come from `readout` by automatic differentiation, instead of by the fast, hand-written way."""

    ranks_by_ego: ClassVar[bool] = False
    """Whether `scorer` needs layer 0 beside the read-out."""
    cut_state: ClassVar[frozenset[str]] = frozenset()
    """Which parts of `extra_state` are tables cut into columns like layer 0, by the name before any dot."""

    settings: TrainedSettings
    compute: Compute
    sampler: TripleSampler
    propagation: Propagation
    ego: TiledTable
    """The trained table, layer 0: users, then items."""
    user_embedding: Tensor
    """Read-out vectors, (n_users, d); empty while nobody ranks by them."""
    item_embedding: Tensor
    item_message: Tensor
    """What an item says to users it has never met, (n_items, d)."""

    # ------------------------------------------------------------------ what do we train on?

    @property
    def sampler_type(self) -> type[TripleSampler]:
        """How are negative items drawn?  Uniformly among those not taken."""
        return TripleSampler

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """What do we train on?  Triples of one epoch, from batch `start` on; a function of seed and epoch alone."""
        triples, size = self.triples(epoch), self.compute.batch_size
        for number, first in enumerate(range(start * size, len(triples[0]), size), start):
            parts = (part[first : first + size] for part in triples)
            yield Batch(*(part.to(self.device, torch.int64) for part in parts), epoch=epoch, number=number)

    @abstractmethod
    def triples(self, epoch: int) -> tuple[Tensor, ...]:
        """The machinery's: users, positive and negative items of an epoch."""

    def draw_parameters(self) -> dict[str, Tensor]:
        """What is trained besides the table?  Nothing.  Each becomes an attribute of its name."""
        return {}

    def pretrained_layers(self) -> int | None:
        """Is a model trained before needed, and how many of its layers beyond layer 0?  None."""
        return None

    def take_pretrained(self, pretrained: Pretrained) -> None:
        """What is kept of that model?  Nothing."""
        raise NotImplementedError(f"{self.name} uses no pre-trained model")

    def carried_over(self, before: Method) -> dict[str, Tensor]:
        """What of a model that was trained before is trained on, besides its table?  The parameters that its run keeps.

        `before` is a model of this method, of other data perhaps; what has another shape there is drawn anew.  A method
        that cannot go on from a trained model raises an `InputError` that says why.
        """
        kept, drawn = before.tensors(), self.draw_parameters()
        return {name: kept[name] for name in drawn if name in kept and kept[name].shape == drawn[name].shape}

    # ------------------------------------------------------------------ how do messages flow?

    def begin(self) -> None:
        """What is needed before the first weights are put in force?  Nothing."""

    def edge_weights(self, layer: int) -> EdgeWeights:
        """How loudly does each interaction speak at this layer?  `1/√(d_u d_i)`."""
        del layer
        return self.graph.symmetric_weights()

    def set_weights(self) -> None:
        """Which weights are put in force?  The current answers of `edge_weights`."""
        self.propagation.set_weights([self.edge_weights(layer) for layer in range(self.settings.layers)])

    def initial_residual(self) -> float:
        """How much of layer 0 joins every later layer?  Nothing."""
        return 0.0

    def readout(self, table: Tensor, nodes: Tensor | None, batch: Batch | None) -> Tensor:
        """How do layers come about, where `uses_whole_table`?  As ever: the mean of propagated layers.

        Rows of these nodes (all without), differentiable in the whole table; the batch is None when training is over.
        """
        del batch
        mean = torch.stack(list(self.propagation.differentiable_layers(table))).mean(dim=0)
        return mean if nodes is None else mean.index_select(0, nodes)

    def refresh(self, epoch: int) -> dict[str, Any]:
        """What is recomputed before an epoch?  Nothing.  What is returned joins the epoch's line of the history."""
        del epoch
        return {}

    # ------------------------------------------------------------------ what is punished?

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """What is punished?  BPR on read-out rows plus L2 on layer-0 rows."""
        l2 = self.l2_term(batch, rows)  # first: the way back then ends with it, when the margins' memory is free
        return softplus(-rows.margins(len(batch))).mean() + l2

    def l2_term(self, batch: Batch, rows: Rows) -> Tensor:
        """`ρ₂ · ½ (‖E_u‖² + ‖E_i‖² + ‖E_j‖²) / B`."""
        return (self.settings.l2 / len(batch)) * rows.half_squares(3 * len(batch))  # a triple's nodes come first

    # ------------------------------------------------------------------ what do we rank by?

    def finish(self) -> None:
        """What is done when the best epoch is back?  Read-out vectors, and what items say to newcomers."""
        self.make_embeddings(with_messages=True)

    @abstractmethod
    def make_embeddings(self, with_messages: bool = False) -> None:
        """The machinery's: vectors from the tables."""

    def scorer(self, items: Tensor | None = None, histories: Histories | None = None) -> Scorer:
        """What do we rank by?  The inner product of read-out vectors."""
        vectors = self.readout_vectors(items, histories)
        return lambda index: vectors.queries(index) @ vectors.items.T

    def vectors(self, items: Tensor | None = None, histories: Histories | None = None) -> Vectors | None:
        """Which vectors does that product take?  The read-out; a method that ranks by anything else answers None."""
        return self.readout_vectors(items, histories)

    @abstractmethod
    def readout_vectors(self, items: Tensor | None = None, histories: Histories | None = None) -> Vectors:
        """The machinery's: read-out vectors of users (those of the histories, if given) and items."""

    # ------------------------------------------------------------------ users unseen in training

    def sent_layers(self) -> Iterator[TiledTable]:
        """What do nodes send at layers 0..L−1 (and hold at the end)?  The layers themselves."""
        return self.propagation.layers(self.ego)

    def new_user_scale(self, history_length: Tensor) -> Tensor:
        """What is a new user's own part of a message's weight?  `1/√d_u`.  Same shape as `history_length`."""
        return history_length.clamp(min=1).rsqrt()

    # ------------------------------------------------------------------ what must survive?

    def extra_state(self) -> dict[str, Tensor]:
        """What else than tables and parameters does training change?  Nothing (copies, if any)."""
        return {}

    def load_extra_state(self, state: dict[str, Tensor]) -> None:
        """How is it put back?  Not at all."""
