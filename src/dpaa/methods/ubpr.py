"""UBPR: BPR for relevance instead of clicks, by inverse propensities (Saito, ICTIR 2020)."""

from functools import cached_property

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import softplus

from dpaa.graph.cooccurrence import KnownPairs
from dpaa.methods._shared import known_pairs
from dpaa.methods.graph_method import Batch, Rows, method
from dpaa.methods.relmf import InversePropensity
from dpaa.methods.samplers import AnyItemSampler, TripleSampler


@method(
    "ubpr",
    title="pairs weighted by inverse propensity; any item may be the negative one",
    paper="Saito, Unbiased Pairwise Learning from Biased Implicit Feedback, ICTIR 2020",
    grid={"propensity_power": (0.1, 0.25, 0.5, 1.0)},
    wide={"lowest_term": (0.0, 0.005, 0.05)},
)
class UBPR(InversePropensity):
    """LightGCN with pairs weighted by inverse propensities.

    loss = mean max(−β, (1/θ_i) (1 − Y_uj/θ_j) softplus(s_uj − s_ui)) + L2,     θ_i = (d_i / max d)^η

    j is any item, also one that the user took (Y = 1): what was seen often and clicked weighs less as a positive, and
    what was clicked at all may not count as irrelevant.
    """

    lowest_term: float = Field(default=0.005, ge=0, description="β: lower bound of a pair's term is −β")

    @property
    def sampler_type(self) -> type[TripleSampler]:
        """Any item may be the negative one."""
        return AnyItemSampler

    @cached_property
    def _known(self) -> KnownPairs:
        return known_pairs(self.graph)

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """Weighted BPR, each term bounded below, and LightGCN's L2."""
        taken = self._known.contain(batch.users * self.graph.n_items + batch.negative)
        weight = self.inverse_propensity[batch.positive]
        weight = weight * torch.where(taken, 1.0 - self.inverse_propensity[batch.negative], 1.0)
        terms = weight * softplus(-rows.margins(len(batch)))
        return terms.clamp(min=-self.lowest_term).mean() + self.l2_term(batch, rows)
