"""PD and PDA: let popularity explain its part of the training pairs, then leave it out or put some back.

    f_ui = ELU(s_ui) + 1 > 0,     loss = softplus(f_uj m_j^γ − f_ui m_i^γ) + L2
    PD ranks by f_ui, PDA by f_ui m_i^γ

with m popularity as a share of the most popular item's (Zhang et al., SIGIR 2021; there per slot of time).
"""

from __future__ import annotations

from functools import cached_property

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import elu, softplus

from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods.base import Histories, Scorer, method
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.rows import Batch, Rows


def popularity_factor(graph: BipartiteGraph, power: float) -> Tensor:
    """`m_i^γ`, m the share of the largest count; who was never taken counts as taken once.  (n_items,)."""
    counts = graph.item_degree.clamp(min=1.0)
    return (counts / counts.max()).pow(power)


def positive_part(score: Tensor) -> Tensor:
    """`ELU(s) + 1`: above 0, in the order of the scores."""
    return elu(score) + 1.0


def explained_bpr(batch: Batch, rows: Rows, factor: Tensor) -> Tensor:
    """BPR of `f m^γ`.  A scalar."""
    user, positive, negative = batch.split(rows.places)
    better = positive_part(rows.dots(user, positive)) * factor[batch.positive]
    worse = positive_part(rows.dots(user, negative)) * factor[batch.negative]
    return softplus(worse - better).mean()


@method(
    "pd",
    title="popularity explains its part of training pairs and is left out of the ranking",
    paper="Zhang et al., Causal Intervention for Leveraging Popularity Bias, SIGIR 2021",
    grid={"popularity_power": (0.02, 0.05, 0.1, 0.2)},
)
class PD(GraphMethod):
    """LightGCN whose training scores are multiplied by popularity."""

    popularity_power: float = Field(
        default=0.02, ge=0, le=4, description="γ: how much of a training pair popularity explains"
    )

    @cached_property
    def factor(self) -> Tensor:
        """`m^γ`, (n_items,)."""
        return popularity_factor(self.graph, self.popularity_power)

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """BPR of the products, and LightGCN's L2; f ranks as s does, so the ranking is LightGCN's."""
        return explained_bpr(batch, rows, self.factor) + self.l2_term(batch, rows)


@method(
    "pda",
    title="popularity explains its part of training pairs and some is put back in the ranking",
    paper="Zhang et al., Causal Intervention for Leveraging Popularity Bias, SIGIR 2021",
    grid={"popularity_power": (0.02, 0.05, 0.1, 0.16, 0.22)},
)
class PDA(GraphMethod):
    """LightGCN whose scores are multiplied by popularity, always."""

    popularity_power: float = Field(
        default=0.16,
        ge=0,
        le=4,
        description="γ: how much of a training pair popularity explains, and how much of it is put back when ranking",
    )

    @cached_property
    def factor(self) -> Tensor:
        """`m^γ`, (n_items,)."""
        return popularity_factor(self.graph, self.popularity_power)

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """BPR of the products, and LightGCN's L2."""
        return explained_bpr(batch, rows, self.factor) + self.l2_term(batch, rows)

    def vectors(self, items: Tensor | None = None, histories: Histories | None = None) -> None:
        """Its scores are no inner product."""
        del items, histories

    @torch.no_grad()
    def scorer(self, items: Tensor | None = None, histories: Histories | None = None) -> Scorer:
        """`f m^γ`."""
        plain, factor = super().scorer(items, histories), self.factor if items is None else self.factor[items]
        return lambda index: positive_part(plain(index)) * factor
