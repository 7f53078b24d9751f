"""APDA: weight each message by the distance of its two ends, recomputed at every pass (Zhou et al., SIGIR 2023).

    n0 = E / ‖E‖,   z = unit(h^l + ρ n0),   ẑ = z + noise (training only)
    x_ab = (2 − 2 c_ab) / τ,   c_ab = stopgrad(ẑ_a)·ẑ_b;    w = x, or ½ exp(x) softplus(x)
    h^(l+1)_a = Σ_b w_ab / √(d_a d_b) dropout(ẑ_b) + ρ (z_a − n0_a);   read-out: mean of h^0 … h^L

The weights carry gradient, so the layers are not linear in E: `apda_layers` has them and the way back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from dpaa.graph.bipartite import EdgeWeights
from dpaa.graph.propagation import TILE_COLUMNS, TiledTable
from dpaa.graph.selection import Selection
from dpaa.kernels.add_rows import add_rows_
from dpaa.methods.apda_layers import ApdaLayers, Perturbation, ReadoutRows
from dpaa.methods.lightgcn import Batch, LightGCN
from dpaa.methods.rows import DistinctRows, Rows
from dpaa.methods.settings import Settings, TrainedSettings

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


class TableRows(DistinctRows):
    """Rows of a read-out that is a function of a whole table, in which its gradient is collected."""

    def __init__(self, nodes: Tensor, selection: Selection, readout: Tensor, table: Tensor, ego: list[Tensor]) -> None:
        super().__init__(selection, nodes, readout, ego)
        self.table = table


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

    whole_from: ClassVar[float] = 2.0  # never: its rows are copies in any case

    settings: ApdaSettings

    def batches(self, epoch: int, start: int = 0) -> Iterator[NumberedBatch]:
        """LightGCN's triples, numbered."""
        for number, batch in enumerate(super().batches(epoch, start), start):
            yield NumberedBatch(batch.users, batch.positive, batch.negative, epoch, number)

    @cached_property
    def layers(self) -> ApdaLayers:
        """The layers with this graph and these settings."""
        settings = self.settings
        share = 1.0 if settings.similarity == "cosine" else 1.0 / settings.embedding_size
        return ApdaLayers(self.graph, settings.layers, settings.residual, settings.scale, settings.weighting, share)

    def extra_memory_bytes(self) -> int:
        """Four tables and four numbers per edge are held for every layer, and about eight of each at the turn."""
        table, edges = self.graph.n_nodes * self.settings.embedding_size * 4, self.graph.n_edges * 4
        return self.settings.layers * (4 * table + 4 * edges) + 8 * (table + edges)

    def draws(self, batch: NumberedBatch) -> np.random.Generator:
        """Where the batch's noise and dropout come from: the same whenever it is trained on."""
        return np.random.default_rng([self.settings.seed, PERTURBATION, batch.epoch, batch.number])

    def forward(self, batch: Batch) -> Rows:
        """The read-out of the batch's nodes, with the noise that belongs to this batch."""
        assert isinstance(batch, NumberedBatch)
        nodes = batch.nodes(self.graph.n_users)
        selection = Selection(self.graph, nodes, whole_from=self.whole_from)
        table = self.ego.rows().requires_grad_()
        perturbation = Perturbation(self.draws(batch), self.settings.noise, self.settings.dropout)
        readout: Tensor = ReadoutRows.apply(table, self.layers, perturbation, selection.nodes)  # type: ignore[no-untyped-call]
        ego = [tile.index_select(0, selection.nodes) for tile in self.ego.tiles]
        return TableRows(nodes, selection, readout, table, ego)

    def tile_gradient(self, rows: Rows, number: int) -> Tensor:
        """The columns of the table's gradient, and what layer 0 received itself."""
        assert isinstance(rows, TableRows)
        assert rows.table.grad is not None
        gradient = rows.table.grad[:, self.ego.columns[number]].clone(memory_format=torch.contiguous_format)
        return add_rows_(gradient, rows.selection.nodes, rows.by_ego(number))

    @torch.no_grad()
    def update_embeddings(self) -> None:
        """The read-out without noise and dropout."""
        readout = self.layers.readout(self.ego.rows())
        self.user_embedding, self.item_embedding = (
            readout[: self.graph.n_users].clone(),
            readout[self.graph.n_users :].clone(),
        )

    def set_weights(self) -> None:
        """Nothing is put in force: the weights follow the embeddings."""

    @torch.no_grad()
    def edge_weights(self, layer: int) -> EdgeWeights:
        """The weights of the current table, for newcomers and for the run's files."""
        walked, _ = next(islice(self.layers.walk(self.ego.rows(), None), layer, None))
        weights = walked.values[: self.graph.n_edges].clone()
        return EdgeWeights(weights, weights)

    @torch.no_grad()
    def sent_layers(self) -> Iterator[TiledTable]:
        """Unit vectors are sent, not the layers."""
        for layer, _ in self.layers.walk(self.ego.rows(), None):
            yield TiledTable.from_dense(layer.sent, TILE_COLUMNS[self.kernel])
