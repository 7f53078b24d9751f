"""SGL: read-outs of two graphs with some edges left out should agree about every node (Wu et al., SIGIR 2021).

    loss = BPR + L2 + λ (InfoNCE of the batch's users against all users + of its items against all items)

The two graphs are drawn anew every epoch, degrees counted on what is left (edge dropout, SGL-ED).
"""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor

from dpaa.graph.propagation import Propagation
from dpaa.methods.base import method
from dpaa.methods.contrast import info_nce, mean_of_layers, thinned_weights
from dpaa.methods.graph_method import WholeTable
from dpaa.methods.rows import Batch, Rows, TableRows

EDGES = 1
"""Number of the random stream that edges are dropped by."""


@method(
    "sgl",
    title="two views with edges left out made to agree about every node",
    paper="Wu et al., Self-supervised Graph Learning for Recommendation, SIGIR 2021",
    grid={
        "contrast_weight": (0.005, 0.05, 0.1, 0.5),
        "dropped_edges": (0.1, 0.3),
    },
)
class SGL(WholeTable):
    """LightGCN with a contrast of two thinned graphs."""

    contrast_weight: float = Field(default=0.1, ge=0, description="λ: how much the agreement counts; 0 is LightGCN")
    dropped_edges: float = Field(default=0.1, ge=0, lt=1, description="ρ: share of the edges that each view leaves out")
    temperature: float = Field(default=0.2, gt=0, description="τ of the contrast")

    _graphs: tuple[int, tuple[Propagation, ...]] = (0, ())
    """Of which epoch, and the two."""

    def thinned(self, epoch: int) -> tuple[Propagation, ...]:
        """The two graphs of an epoch, a function of seed and epoch alone."""
        if self._graphs[0] != epoch:
            made = []
            for number in (0, 1):
                weights = thinned_weights(self.graph, self.dropped_edges, self.generator(EDGES, epoch, number))
                one = Propagation(self.graph, self.layers, self.compute.kernel, self.tables.propagation.workers)
                one.set_weights([weights] * self.layers)
                made.append(one)
            self._graphs = epoch, tuple(made)
        return self._graphs[1]

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """LightGCN's, and InfoNCE of the batch's rows (repeats count, made once) against all nodes of their side."""
        fit = super().loss(batch, rows)
        if not self.contrast_weight:
            return fit
        assert isinstance(rows, TableRows)
        views = [mean_of_layers(list(one.differentiable_layers(rows.table)), True) for one in self.thinned(batch.epoch)]
        contrast = fit.new_zeros(())
        sides = [torch.split(view, [self.graph.n_users, self.graph.n_items]) for view in views]
        for nodes, one, two in zip((batch.users, batch.positive), *sides, strict=True):
            own, times = torch.unique(nodes, return_counts=True)
            contrast = contrast + info_nce(one.index_select(0, own), two, self.temperature, own, times)
        return fit + self.contrast_weight * contrast
