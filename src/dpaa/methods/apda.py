"""APDA: weight each message by the distance of its two ends, recomputed at every pass (Zhou et al., SIGIR 2023).

    n0 = E / ‖E‖,   z = unit(h^l + ρ n0),   ẑ = z + noise (training only)
    x_ab = (2 − 2 c_ab) / τ,   c_ab = stopgrad(ẑ_a)·ẑ_b;    w = x, or ½ exp(x) softplus(x)
    h^(l+1)_a = Σ_b w_ab / √(d_a d_b) dropout(ẑ_b) + ρ (z_a − n0_a);   read-out: mean of h^0 … h^L

The weights carry gradient, so the layers go through autograd, with two operations along the edges of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import normalize, softplus

from dpaa.graph.bipartite import BipartiteGraph, EdgeWeights
from dpaa.graph.edge_dots import edge_dots
from dpaa.graph.propagation import TILE_COLUMNS, TiledTable
from dpaa.kernels.spmm import KERNELS
from dpaa.methods.lightgcn import Batch, LightGCN
from dpaa.methods.rows import Rows
from dpaa.methods.settings import Settings, TrainedSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

PERTURBATION = 1
"""Number of the random stream of noise and dropout; the epoch and the batch's number follow it."""


class ApdaSettings(TrainedSettings):
    """LightGCN's settings and APDA's."""

    residual: float = Field(default=0.6, ge=0)
    """ρ: how much of the initial direction joins every layer."""
    scale: float = Field(default=1.1, gt=0)
    """τ: distances are divided by it."""
    weighting: Literal["linear", "exponential"] = "linear"
    """Weight as a function of the scaled distance x: x itself, or `½ exp(x) softplus(x)`."""
    similarity: Literal["cosine", "cosine/D"] = "cosine"
    """What the distance is made from: the cosine, or its mean over the D columns as in the public code."""
    noise: float = Field(default=0.1, ge=0)
    """Length of the noise added to every node while training."""
    dropout: float = Field(default=0.4, ge=0, lt=1)
    """Share of what is sent that is dropped while training."""


@dataclass(frozen=True)
class NumberedBatch(Batch):
    """A batch that knows its place, from which its noise and dropout follow."""

    epoch: int
    number: int


class TableRows(Rows):
    """Rows of a whole table under autograd, whose gradient is collected in the table."""

    def __init__(self, nodes: Tensor, readout: Tensor, table: Tensor) -> None:
        super().__init__(readout[nodes], table[nodes])
        self.table = table


class _EdgeCloseness(torch.autograd.Function):
    """`z_u·z_i` per edge, once as what the user and once as what the item hears; gradient to the sender alone."""

    @staticmethod
    def forward(ctx: Any, graph: BipartiteGraph, rows: Tensor) -> tuple[Tensor, Tensor]:
        ctx.graph = graph
        ctx.save_for_backward(rows)
        closeness = edge_dots(graph, rows[: graph.n_users], rows[graph.n_users :])
        return closeness, closeness.clone()

    @staticmethod
    def backward(ctx: Any, by_to_user: Tensor, by_to_item: Tensor) -> tuple[None, Tensor]:
        values = ctx.graph.transposed_slot_values(EdgeWeights(by_to_user, by_to_item))
        return None, _weighted_sum(ctx.graph, values, ctx.saved_tensors[0])


class _Aggregate(torch.autograd.Function):
    """Weighted sum over neighbours, with the gradient of the weights."""

    @staticmethod
    def forward(ctx: Any, graph: BipartiteGraph, to_user: Tensor, to_item: Tensor, rows: Tensor) -> Tensor:
        ctx.graph = graph
        ctx.save_for_backward(to_user, to_item, rows)
        return _weighted_sum(graph, graph.slot_values(EdgeWeights(to_user, to_item)), rows)

    @staticmethod
    def backward(ctx: Any, by_sum: Tensor) -> tuple[None, Tensor, Tensor, Tensor]:
        to_user, to_item, rows = ctx.saved_tensors
        graph, n = ctx.graph, ctx.graph.n_users
        by_rows = _weighted_sum(graph, graph.transposed_slot_values(EdgeWeights(to_user, to_item)), by_sum)
        return None, edge_dots(graph, by_sum[:n], rows[n:]), edge_dots(graph, rows[:n], by_sum[n:]), by_rows


def _weighted_sum(graph: BipartiteGraph, values: Tensor, rows: Tensor) -> Tensor:
    return KERNELS["bag"](graph.indptr, graph.neighbours, values, rows.contiguous())


def distance_weight(closeness: Tensor, scale: float, weighting: str) -> Tensor:
    """The weight w of an edge from the closeness of its ends."""
    distance = (2.0 - 2.0 * closeness) / scale
    return distance if weighting == "linear" else 0.5 * distance.exp() * softplus(distance)


class APDA(LightGCN):
    """LightGCN with weights that follow the embeddings.  Changes: `forward`, `tile_gradient`, `update_embeddings`."""

    name: ClassVar[str] = "apda"
    title: ClassVar[str] = "messages weighted by the distance of their ends, at every pass"
    paper: ClassVar[str] = "Zhou et al., Adaptive Popularity Debiasing Aggregator for GCF, SIGIR 2023"
    settings_type: ClassVar[type[Settings]] = ApdaSettings
    grid: ClassVar[dict[str, tuple[object, ...]]] = {
        "residual": (0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
        "weighting": ("linear", "exponential"),
        "similarity": ("cosine", "cosine/D"),
    }
    wide: ClassVar[dict[str, tuple[object, ...]]] = {
        "scale": (0.9, 1.1, 1.3),
        "noise": (0.0, 0.1, 0.2),
        "dropout": (0.0, 0.2, 0.4, 0.6),
    }

    settings: ApdaSettings

    def batches(self, epoch: int, start: int = 0) -> Iterator[NumberedBatch]:
        """LightGCN's triples, numbered."""
        for number, batch in enumerate(super().batches(epoch, start), start):
            yield NumberedBatch(batch.users, batch.liked, batch.other, epoch, number)

    def layers(self, table: Tensor, generator: torch.Generator | None) -> Iterator[tuple[Tensor, EdgeWeights, Tensor]]:
        """Per layer what is sent (ẑ), with which weights, and what comes of it; with a generator as in training."""
        settings, scaling = self.settings, self._symmetric.to_user
        initial, layer = normalize(table), table
        for _ in range(settings.layers):
            unit = normalize(layer + settings.residual * initial)
            sent = unit if generator is None else self._perturbed(unit, generator)
            share = 1.0 if settings.similarity == "cosine" else 1.0 / table.shape[1]
            closeness = _EdgeCloseness.apply(self.graph, sent)  # type: ignore[no-untyped-call]  # torch leaves it
            weights = EdgeWeights(
                *(scaling * distance_weight(share * c, settings.scale, settings.weighting) for c in closeness)
            )
            kept = sent if generator is None else self._dropped(sent, generator)
            heard = _Aggregate.apply(self.graph, weights.to_user, weights.back, kept)  # type: ignore[no-untyped-call]
            layer = heard + settings.residual * (unit - initial)
            yield sent, weights, layer

    def extra_memory_bytes(self) -> int:
        """Autograd holds about eight tables and eight numbers per edge for every layer."""
        tables = 8 * self.graph.n_nodes * self.settings.embedding_size * 4
        return self.settings.layers * (tables + 8 * self.graph.n_edges * 4)

    def _perturbed(self, unit: Tensor, generator: torch.Generator) -> Tensor:
        noise = torch.rand(unit.shape, generator=generator).to(self.device)
        return unit + self.settings.noise * unit.sign() * normalize(noise)

    def _dropped(self, sent: Tensor, generator: torch.Generator) -> Tensor:
        kept = torch.rand(sent.shape, generator=generator).to(self.device) >= self.settings.dropout
        return sent * kept / (1.0 - self.settings.dropout)

    def _readout(self, table: Tensor, generator: torch.Generator | None) -> Tensor:
        total = table
        for _, _, layer in self.layers(table, generator):
            total = total + layer
        return total * self.propagation.share

    def forward(self, batch: Batch) -> Rows:
        """All layers under autograd, with the noise that belongs to this batch."""
        assert isinstance(batch, NumberedBatch)
        table = self.ego.rows().requires_grad_()
        generator = self.generator(PERTURBATION, batch.epoch, batch.number)
        return TableRows(batch.nodes(self.graph.n_users), self._readout(table, generator), table)

    def tile_gradient(self, rows: Rows, number: int) -> Tensor:
        """The columns of the table's gradient."""
        assert isinstance(rows, TableRows)
        assert rows.table.grad is not None
        return rows.table.grad[:, self.ego.columns[number]].contiguous()

    @torch.no_grad()
    def update_embeddings(self) -> None:
        """The read-out without noise and dropout."""
        readout = self._readout(self.ego.rows(), None)
        self.user_embedding, self.item_embedding = (
            readout[: self.graph.n_users].clone(),
            readout[self.graph.n_users :].clone(),
        )

    def set_weights(self) -> None:
        """Nothing is put in force: the weights follow the embeddings."""

    @torch.no_grad()
    def edge_weights(self, layer: int) -> EdgeWeights:
        """The weights of the current table, for newcomers and for the run's files."""
        return [weights for _, weights, _ in self.layers(self.ego.rows(), None)][layer]

    @torch.no_grad()
    def sent_layers(self) -> Iterator[TiledTable]:
        """Unit vectors are sent, not the layers."""
        for sent, _, _ in self.layers(self.ego.rows(), None):
            yield TiledTable.from_dense(sent, TILE_COLUMNS[self.kernel])
