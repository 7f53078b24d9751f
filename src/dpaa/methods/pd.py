"""PD and PDA: popularity is a factor of training scores, and is left out or put back in the ranking (SIGIR 2021)."""

from functools import cached_property

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import elu, softplus

from dpaa.methods.graph_method import Batch, GraphMethod, Histories, Rows, Scorer, method

PAPER = "Zhang et al., Causal Intervention for Leveraging Popularity Bias, SIGIR 2021"


@method(
    "pd",
    title="popularity is a factor of the score in training, and left out of the ranking",
    paper=PAPER,
    grid={"popularity_power": (0.02, 0.05, 0.1, 0.2)},
)
class PD(GraphMethod):
    """LightGCN whose training scores are multiplied by popularity.

    f_ui = ELU(s_ui) + 1 > 0,     loss = softplus(f_uj m_j^γ − f_ui m_i^γ) + L2

    m is popularity as a share of the most popular item's (in the paper per slot of time).  PD ranks by f_ui, which
    orders items as s_ui does, PDA by f_ui m_i^γ.
    """

    popularity_power: float = Field(default=0.02, ge=0, le=4, description="γ: power of popularity in training scores")

    @cached_property
    def factor(self) -> Tensor:
        """`m^γ`, (n_items,); an item never taken counts as taken once."""
        counts = self.graph.item_degree.clamp(min=1.0)
        return (counts / counts.max()).pow(self.popularity_power)

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """BPR of the products, and LightGCN's L2."""
        user, positive, negative = batch.split(rows.index)
        better = (elu(rows.dots(user, positive)) + 1.0) * self.factor[batch.positive]
        worse = (elu(rows.dots(user, negative)) + 1.0) * self.factor[batch.negative]
        return softplus(worse - better).mean() + self.l2_term(batch, rows)


@method(
    "pda",
    title="popularity is a factor of the score in training, and partly put back in the ranking",
    paper=PAPER,
    grid={"popularity_power": (0.02, 0.05, 0.1, 0.16, 0.22)},
)
class PDA(PD):
    """PD whose scores are multiplied by popularity when ranking, too: `f_ui m_i^γ`."""

    popularity_power: float = 0.16

    def vectors(self, items: Tensor | None = None, histories: Histories | None = None) -> None:
        """None: its scores are no inner product."""

    @torch.no_grad()
    def scorer(self, items: Tensor | None = None, histories: Histories | None = None) -> Scorer:
        """`f m^γ`."""
        plain, factor = self.readout_vectors(items, histories), self.factor if items is None else self.factor[items]
        return lambda index: (elu(plain.scores(index)) + 1.0) * factor
