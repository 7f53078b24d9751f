"""SGL: contrast of the read-outs of two graphs with dropped edges (Wu et al., SIGIR 2021)."""

import torch
from pydantic import Field
from torch import Tensor

from dpaa.graph.bipartite import BipartiteGraph, EdgeWeights
from dpaa.graph.propagation import Propagation
from dpaa.methods.contrast import info_nce, mean_of_layers
from dpaa.methods.graph_method import Batch, Rows, WholeTable, method
from dpaa.methods.tables import TableRows

EDGES = 1
"""Number of the random stream that edges are dropped by."""


def thinned_weights(graph: BipartiteGraph, dropped: float, generator: torch.Generator) -> EdgeWeights:
    """LightGCN's weights on the graph without a share of its edges, degrees counted there; 0 for what is left out."""
    count = torch.zeros(graph.n_edges, device=graph.device)
    chosen = torch.randperm(graph.n_edges, generator=generator, device=count.device)
    chosen = chosen[: int(graph.n_edges * (1.0 - dropped))]
    count[chosen] = graph.edge_count[chosen]
    weight = count.clone()
    for side, n in ((graph.edge_user, graph.n_users), (graph.edge_item, graph.n_items)):
        degree = torch.zeros(n, device=count.device).index_add_(0, side, count)
        weight *= degree.clamp(min=1e-12).rsqrt().masked_fill(degree == 0, 0.0).index_select(0, side)
    return EdgeWeights(weight)


@method(
    "sgl",
    title="contrast of two views with dropped edges",
    paper="Wu et al., Self-supervised Graph Learning for Recommendation, SIGIR 2021",
    grid={"contrast_weight": (0.005, 0.05, 0.1, 0.5), "dropped_edges": (0.1, 0.3)},
)
class SGL(WholeTable):
    """LightGCN with a contrast of two thinned graphs (edge dropout, SGL-ED), drawn every epoch.

    loss = BPR + L2 + λ (InfoNCE of the batch's users against all users + of its items against all items)
    """

    contrast_weight: float = Field(default=0.1, ge=0, description="λ: weight of the contrast; 0 is LightGCN")
    dropped_edges: float = Field(default=0.1, ge=0, lt=1, description="ρ: share of the edges that each view leaves out")
    temperature: float = Field(default=0.2, gt=0, description="τ of the contrast")

    _thinned: tuple[int, list[Propagation]] = (0, [])
    """The epoch, and its two graphs."""

    def thinned(self, epoch: int) -> list[Propagation]:
        """Draw the two thinned graphs of an epoch, a function of seed and epoch alone.

        Parameters
        ----------
        epoch : from 1

        Returns
        -------
        propagation over each of them
        """
        if self._thinned[0] != epoch:
            graphs = []
            for number in (0, 1):
                weights = thinned_weights(self.graph, self.dropped_edges, self.generator(EDGES, epoch, number))
                thinned = Propagation(self.graph, self.layers, self.compute.kernel, self.tables.propagation.workers)
                thinned.set_weights([weights] * self.layers)
                graphs.append(thinned)
            self._thinned = epoch, graphs
        return self._thinned[1]

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """LightGCN's, and InfoNCE of the batch's rows (repeats computed once) against all nodes of their side."""
        fit = super().loss(batch, rows)
        if not self.contrast_weight:
            return fit
        assert isinstance(rows, TableRows)
        views = [mean_of_layers(list(g.differentiable_layers(rows.table)), True) for g in self.thinned(batch.epoch)]
        contrast = fit.new_zeros(())
        sides = [torch.split(view, [self.graph.n_users, self.graph.n_items]) for view in views]
        for nodes, one, two in zip((batch.users, batch.positive), *sides, strict=True):
            own, times = torch.unique(nodes, return_counts=True)
            contrast = contrast + info_nce(one.index_select(0, own), two, self.temperature, own, times)
        return fit + self.contrast_weight * contrast
