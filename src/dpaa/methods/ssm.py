"""SSM: sampled softmax, the positive item against many negatives at once (Wu et al., TOIS 2024)."""

from collections.abc import Iterator
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import normalize, softplus

from dpaa.methods._drawn import DrawnNegatives
from dpaa.methods.contrast import batch_softmax, log_sum_exp
from dpaa.methods.graph_method import Batch, GraphMethod, Rows, method, scores


@method(
    "ssm",
    title="sampled softmax: the positive item against many negatives at once",
    default_candidate=True,
    paper="Wu et al., On the Effectiveness of Sampled Softmax Loss for Item Recommendation, TOIS 2024",
    version=2,
    grid={"temperature": (0.05, 0.1, 0.15, 0.2, 0.3)},
    wide={"log_q": (False, True), "negatives": ("batch", "drawn")},
)
class SSM(DrawnNegatives):
    """LightGCN with a sampled softmax in place of BPR.

    loss = mean[log Σ_{j ∈ {i} ∪ N} exp(c_uj / τ) − c_ui / τ] + L2

    c is the cosine.  N are items drawn for the batch, or its other positive items: of these popular ones occur more
    often, which holds them back; the correction by log q takes that away again.
    """

    learning_rate: float = 5e-3
    patience: int = 20
    sampler: Literal["user-uniform", "interaction"] = "interaction"
    temperature: float = Field(default=0.2, gt=0, description="τ: smaller values give hard negatives more weight")
    negatives: Literal["batch", "drawn"] = Field(
        default="drawn", description="`batch`: the other positive items of the batch; `drawn`: items drawn uniformly"
    )
    n_negatives: int = 256
    log_q: bool = Field(default=False, description="whether logits of negatives are corrected by log expected count")

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """LightGCN's triples, with items drawn for each batch where negatives are drawn."""
        return GraphMethod.batches(self, epoch, start) if self.negatives == "batch" else super().batches(epoch, start)

    @cached_property
    def positive_chance(self) -> Tensor:
        """q: how likely an item is to be the positive one of a triple, (n_items,), sum 1."""
        graph = self.graph
        if self.sampler == "interaction":
            return graph.item_degree / graph.item_degree.sum()
        share = graph.edge_count / graph.user_degree.index_select(0, graph.edge_user)
        chance = torch.zeros_like(graph.item_degree).index_add_(0, graph.edge_item, share)
        return chance / chance.sum()

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """The softmax, and L2 of the rows of users and positive items."""
        user, positive, _, *drawn = batch.split(normalize(rows.readout))
        if drawn:  # every item is as likely to be drawn, so log q is one number
            shift = float(np.log(self.n_negatives / self.graph.n_items)) if self.log_q else 0.0
            negatives = log_sum_exp(user, drawn[0], self.temperature) - shift
            softmax = softplus(negatives - scores(user, positive) / self.temperature).mean()
        else:
            log_q = ((len(batch) - 1) * self.positive_chance).clamp(min=1e-12).log() if self.log_q else None
            softmax = batch_softmax(user, positive, self.temperature, batch.positive, log_q=log_q)
        return softmax + self.l2_term(batch, rows, parts=2)
