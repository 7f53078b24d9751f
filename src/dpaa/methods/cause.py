"""CausE: keep the table close to a second one, trained on randomised exposure (Bonner and Vasile, RecSys 2018)."""

from functools import cached_property

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from dpaa.data.pairs import Pairs
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.graph.propagation import Propagation
from dpaa.methods._options import INITIAL_DEVIATION
from dpaa.methods.base import Randomised
from dpaa.methods.contrast import mean_of_layers
from dpaa.methods.graph_method import Batch, GraphMethod, Rows, fitted, method, scores
from dpaa.methods.samplers import TripleSampler
from dpaa.methods.tables import cross_entropy

TREATMENT, DRAWN = 1, 2
"""Numbers of the random streams that the second table and the randomised triples are drawn from."""


@method(
    "cause",
    title="kept close to a second table that is trained only on randomised exposure",
    paper="Bonner and Vasile, Causal Embeddings for Recommendation, RecSys 2018",
    grid={"agreement_weight": (1e-3, 1e-2, 0.05, 0.1, 1.0)},
)
class CausE(Randomised, GraphMethod):
    """LightGCN with a second table for randomised pairs.

    loss = CE(log, z) + CE(randomised, t) + λ (mean ‖z_u − t_u‖² + mean ‖z_i − t_i‖²) / d + L2

    z are read-outs of the log's graph, t those of a table of its own on the graph of the randomised pairs; items are
    ranked by z.
    """

    agreement_weight: float = Field(default=0.05, ge=0, description="λ: weight of the distance of both tables")

    treatment: Tensor = fitted()
    """The second table, users then items, (n_nodes, d)."""

    def take(self, pairs: Pairs) -> None:
        """The graph of these pairs, and who draws triples from it."""
        self._randomised = BipartiteGraph.from_pairs(pairs, self.graph.n_users, self.graph.n_items, self.graph.device)
        ones = np.ones(len(pairs), np.int32)
        self._draw = TripleSampler(pairs.user, pairs.item, ones, self.graph.n_users, self.graph.n_items)

    @cached_property
    def _beside(self) -> Propagation:
        graph, workers = self._randomised, self.tables.propagation.workers
        propagation = Propagation(graph, self.layers, self.compute.kernel, workers)
        propagation.set_weights([graph.symmetric_weights()] * self.layers)
        return propagation

    def parameters(self) -> dict[str, Tensor]:
        """The second table, as the first is drawn."""
        table = torch.empty(self.graph.n_nodes, self.embedding_size)
        return {"treatment": table.normal_(0.0, INITIAL_DEVIATION, generator=self.generator(TREATMENT))}

    def randomised_triples(self, batch: Batch) -> tuple[Tensor, ...]:
        """Draw triples from the randomised pairs: one per pair, at most as many as the batch has.

        Parameters
        ----------
        batch : whose epoch and number determine the draw

        Returns
        -------
        indices of users, positive and negative items, (n,) each
        """
        rng = np.random.default_rng([self.seed, batch.epoch, DRAWN, batch.number])
        parts = (part[: len(batch)] for part in self._draw.epoch(rng, "interaction"))
        return tuple(torch.from_numpy(part).to(self.graph.device, torch.int64) for part in parts)

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """Cross-entropy of both tables on their own pairs, their distance on the batch's nodes, and LightGCN's L2."""
        user, positive, negative = batch.split(rows.index)
        fit = cross_entropy(rows.dots(user, positive), rows.dots(user, negative)) + self.l2_term(batch, rows)
        if not self.agreement_weight:
            return fit
        user, positive, negative = batch.split(rows.readout)
        beside = mean_of_layers(list(self._beside.differentiable_layers(self.treatment)), True)
        n_users = self.graph.n_users
        users, liked, others = self.randomised_triples(batch)
        if len(users):
            drawn = beside[users]
            fit = fit + cross_entropy(scores(drawn, beside[liked + n_users]), scores(drawn, beside[others + n_users]))
        apart = (user - beside[batch.users]).square().mean()
        items = torch.cat([batch.positive, batch.negative]) + n_users
        apart = apart + (torch.cat([positive, negative]) - beside[items]).square().mean()
        return fit + self.agreement_weight * apart
