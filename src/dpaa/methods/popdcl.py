"""PopDCL: a softmax that mistrusts popular positives and likely false negatives (Liu et al., CIKM 2023).

    loss = mean −log[e^((f_ui − M⁺)/τ) / (e^((f_ui − M⁺)/τ) + Σ_j e^((f_uj − M⁻)/τ))] + L2
    M⁺ = s σ(d_i / D_u · mean_j f_uj),     M⁻ = s ω_u / (1 − ω_u) · e^((f_ui − f_uj)/τ),     ω_u = D_u / |R|

f is the cosine, D_u the counts of the user's items added up, j the other positive items of the batch: d_i / D_u is how
likely i is there for its popularity, ω_u how likely one of the others is an item the user took.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import normalize

from dpaa.methods.base import method
from dpaa.methods.contrast import Hide, block_parts, others, softmax_loss
from dpaa.methods.graph_method import GraphMethod
from dpaa.methods.rows import Batch, Rows, scores

SURELY = 1.0 - 1e-6
"""The largest ω: a user who took everything has no negatives at all."""

LARGEST = 60.0
"""Exponent of M⁻ beyond which a negative counts nothing in any case; larger ones would overflow."""


@method(
    "popdcl",
    title="a softmax that mistrusts popular positives and likely false negatives",
    paper="Liu et al., PopDCL: Popularity-aware Debiased Contrastive Loss, CIKM 2023",
    grid={"temperature": (0.06, 0.09, 0.12, 0.15, 0.2)},
    wide={"correction": (0.25, 0.5, 1.0)},
)
class PopDCL(GraphMethod):
    """LightGCN with a softmax corrected on both sides."""

    temperature: float = Field(default=0.12, gt=0, description="τ of the softmax")
    correction: float = Field(default=1.0, ge=0, description="s: how much of both corrections is in force; 0 is SSM")

    @cached_property
    def taken(self) -> Tensor:
        """D: the counts of each user's items added up, (n_users,)."""
        graph = self.graph
        counts = graph.item_degree.index_select(0, graph.edge_item)
        return torch.zeros_like(graph.user_degree).index_add_(0, graph.edge_user, counts)

    def loss(self, batch: Batch, rows: Rows) -> Tensor:
        """The corrected softmax, and L2 of the rows of users and positive items."""
        user, item, _ = (normalize(part) for part in batch.split(rows.readout))
        own = scores(user, item)
        taken = self.taken[batch.users]
        share = (taken / self.graph.item_degree.sum()).clamp(max=SURELY)
        mean = (scores(user, item.sum(dim=0)[None]) - own) / max(len(batch) - 1, 1)  # of f_uj
        mistrust = self.correction * torch.sigmoid(self.graph.item_degree[batch.positive] / taken * mean)
        weight = self.correction * share / (1.0 - share)
        _, columns, times, hide = others(batch.positive, item)
        negatives = corrected_log_sum_exp(user, columns, own / self.temperature, weight, self.temperature, times, hide)
        l2 = (self.l2 / len(batch)) * rows.half_squares(2 * len(batch))
        return softmax_loss((own - mistrust) / self.temperature, negatives) + l2


def corrected_log_sum_exp(
    user: Tensor, item: Tensor, own: Tensor, weight: Tensor, temperature: float, bias: Tensor, hide: Hide
) -> Tensor:
    """`log Σ_j exp(x_bj − w_b/τ e^(p_b − x_bj) + bias_j)` over what is not hidden, `x = u·i/τ`.  (rows,).

    p are given; w, and what is hidden, are constants.
    """
    constants = (weight / temperature, 1.0 / temperature, bias, hide)
    found: Tensor = _CorrectedLogSumExp.apply(user, item, own, *constants)  # type: ignore[no-untyped-call]
    return found


class _CorrectedLogSumExp(torch.autograd.Function):
    """By blocks; of all rows × columns only what the way back needs is kept: each logit's share times its slope."""

    @staticmethod
    def forward(
        ctx: Any, user: Tensor, item: Tensor, own: Tensor, weight: Tensor, scale: float, bias: Tensor, hide: Hide
    ) -> Tensor:
        found, kept = user.new_empty(len(user)), user.new_empty(len(user), len(item))
        for part in block_parts(len(user), len(item)):
            logits = torch.mm(user[part], item.T, out=kept[part]).mul_(scale)
            slope = torch.sub(own[part, None], logits).clamp_(max=LARGEST).exp_()
            slope.mul_(weight[part, None])  # w/τ e^(p − x)
            logits.sub_(slope).add_(bias)
            hide(logits, part)
            level = logits.amax(dim=1, keepdim=True)
            level.masked_fill_(level == -torch.inf, 0.0)  # a batch of one: no negatives
            total = logits.sub_(level).exp_().sum(dim=1, keepdim=True)
            found[part] = (level + total.log()).squeeze(1)
            logits.div_(total.clamp_(min=torch.finfo(total.dtype).tiny)).mul_(slope.add_(1.0))
        ctx.scale = scale
        ctx.save_for_backward(user, item, kept, found)
        return found

    @staticmethod
    def backward(ctx: Any, by_found: Tensor) -> tuple[Tensor | None, ...]:
        user, item, kept, found = ctx.saved_tensors
        weight = (ctx.scale * by_found)[:, None]
        by_user, by_item = torch.mm(kept, item).mul_(weight), torch.mm(kept.T, user * weight)
        some = (found != -torch.inf).to(by_found.dtype)  # shares sum to 1, or there are none
        return by_user, by_item, by_found * (some - kept.sum(dim=1)), None, None, None, None
