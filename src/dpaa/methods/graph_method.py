"""LightGCN and the hooks by which a trained graph method differs from it."""

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from dpaa._machine import lasting
from dpaa.graph.bipartite import BipartiteGraph, EdgeWeights
from dpaa.graph.propagation import WHOLE_FROM
from dpaa.methods._options import EARLIER_DEFAULTS, PAPER_TRAINING, Compute
from dpaa.methods._trained import TrainedMethod
from dpaa.methods.base import Histories, Scorer, Vectors, fitted, method
from dpaa.methods.samplers import TripleSampler
from dpaa.methods.tables import Batch, Rows, Tables, scores

__all__ = ["EARLIER_DEFAULTS", "PAPER_TRAINING", "Batch", "GraphMethod", "Histories", "Rows", "Scorer", "Vectors"]
__all__ += ["WholeTable", "fitted", "method", "scores"]
"""The hooks, and what most files of a method are written with besides."""


class GraphMethod(TrainedMethod):
    """Embeddings propagated over the interaction graph and trained in epochs; every hook defaults to LightGCN's."""

    grid: ClassVar[dict[str, tuple[object, ...]]] = {"learning_rate": (1e-5, 1e-4, 1e-3)}
    _whole_from: ClassVar[float] = WHOLE_FROM
    """Share of the nodes in a batch from which on whole tables are worked on."""
    _whole_table: ClassVar[bool] = False
    """Whether torch differentiates through the whole table (`WholeTable`)."""
    _static_weights: ClassVar[bool] = True
    """Whether `edge_weights` stay as they are within an epoch."""
    _ranks_by_ego: ClassVar[bool] = False
    """Whether `scorer` needs layer 0 beside the read-out."""
    _cut_state: ClassVar[frozenset[str]] = frozenset()
    """Parts of `extra_state` that are tables cut into columns like layer 0, by the name before any dot."""

    tables: Tables = fitted()

    def _attach(self, graph: BipartiteGraph) -> None:
        super()._attach(graph)
        self.compute = Compute.of(graph, self)

    # ------------------------------------------------------------------ training data

    @property
    def sampler_type(self) -> type[TripleSampler]:
        """Sampler of negative items: uniform among those the user did not take."""
        return TripleSampler

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """Batches of an epoch, a function of seed and epoch alone.

        Parameters
        ----------
        epoch : from 1
        start : number of the first batch to yield

        Returns
        -------
        an iterator of batches
        """
        size, rng = self.compute.batch_size, np.random.default_rng([self.seed, epoch])
        # An epoch's triples stay as long as the epoch: among the memory of steps they would part it.
        with lasting():
            triples = self.tables.sampler.epoch(rng, self.sampler)
        device = self.graph.device
        for number, first in enumerate(range(start * size, len(triples[0]), size), start):
            parts = (torch.from_numpy(part[first : first + size]) for part in triples)
            yield Batch(*(part.to(device, torch.int64) for part in parts), epoch=epoch, number=number)

    def parameters(self) -> dict[str, Tensor]:
        """Draw initial values of what is trained besides the embedding table.

        Returns
        -------
        name → tensor; each becomes an attribute of that name
        """
        return {}

    # ------------------------------------------------------------------ messages

    def begin(self) -> None:
        """Prepare training, before the first edge weights are set."""

    def edge_weights(self, layer: int) -> EdgeWeights:
        """Compute the weights of the messages at a layer: `1/√(d_u d_i)`.

        Parameters
        ----------
        layer : from 0

        Returns
        -------
        the weights of every edge
        """
        return self.graph.symmetric_weights()

    def residual_share(self) -> float:
        """Return the share of layer 0 that is added to every later layer.

        Returns
        -------
        the share, 0 = none
        """
        return 0.0

    def refresh(self, epoch: int) -> dict[str, Any]:
        """Recompute quantities that change between epochs; called before each epoch.

        Parameters
        ----------
        epoch : from 1

        Returns
        -------
        entries for the epoch's line in the history
        """
        return {}

    # ------------------------------------------------------------------ loss

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """Loss of a batch: BPR on read-out rows plus L2 on layer-0 rows.

        Parameters
        ----------
        batch : triples of user, positive and negative item
        rows : read-out and layer-0 rows of the batch's nodes

        Returns
        -------
        a scalar
        """
        l2 = self.l2_term(batch, rows)  # first, so that backward ends with it, when the margins' memory is free
        return softplus(-rows.margins(len(batch))).mean() + l2

    def l2_term(self, batch: Batch, rows: Rows, parts: int = 3) -> Tensor:
        """Compute the L2 term, `l2 · ½ (‖E_u‖² + ‖E_i‖² + ‖E_j‖²) / B`.

        Parameters
        ----------
        batch : B triples
        rows : layer-0 rows of its nodes
        parts : 2 leaves out the negative items j; default 3

        Returns
        -------
        a scalar
        """
        return (self.l2 / len(batch)) * rows.half_squares(parts * len(batch))  # a triple's nodes come first

    # ------------------------------------------------------------------ state

    def load_state(self, state: dict[str, Tensor], copy: bool = True) -> None:
        """Restore what `state` returned; layer 0 is always copied, since it is kept in tiles."""
        rest = dict(state)
        if "user_ego" in rest:
            self.tables = Tables(self, self._tiled(torch.cat([rest.pop("user_ego"), rest.pop("item_ego")])))
        super().load_state(rest, copy)


class WholeTable(GraphMethod):
    """Base of methods whose read-out torch differentiates through the whole table."""

    _whole_table: ClassVar[bool] = True

    def table_readout(self, table: Tensor, batch: Batch | None) -> Tensor:
        """Read-out of all nodes as a differentiable function of the whole table: the mean of propagated layers.

        Parameters
        ----------
        table : (n_nodes, d) layer 0
        batch : the batch in training, None afterwards

        Returns
        -------
        (n_nodes, d)
        """
        return torch.stack(list(self.tables.propagation.differentiable_layers(table))).mean(dim=0)
