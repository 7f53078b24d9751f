"""One contrastive primitive: how likely a row's own column is among many, by blocks of rows.

    log Σ_c exp(x_b·y_c / τ + bias_c)

Beyond a few millions no matrix of all rows × all columns is ever held: the products are made again block by block on
the way back.  InfoNCE, sampled softmax and the uniformity of a set of vectors are a line each on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize, softplus

BLOCK_CELLS = 1 << 19
"""Products that are worked on at once (2 MB)."""
KEPT_CELLS = 1 << 22
"""Products (16 MB) that are kept for the way back; where there are more they are made a second time."""

Hide = Callable[[Tensor, slice], object]
"""Takes the logits of a block, (rows, columns), and the slice that its rows are; sets to −inf what does not count."""


def log_sum_exp(
    rows: Tensor, columns: Tensor, temperature: float, bias: Tensor | None = None, hide: Hide | None = None
) -> Tensor:
    """`log Σ_c exp(x_b·y_c / τ + bias_c)` over the columns that are not hidden, −inf where all are.  (rows,)."""
    found: Tensor = _LogSumExp.apply(rows, columns, 1.0 / temperature, bias, hide)  # type: ignore[no-untyped-call]
    return found


class _LogSumExp(torch.autograd.Function):
    """Forward keeps each row's sum, and the shares in it where they are few."""

    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, columns: Tensor, scale: float, bias: Tensor | None, hide: Hide | None
    ) -> Tensor:
        found = rows.new_empty(len(rows))
        kept = rows.new_empty(len(rows), len(columns)) if len(rows) * len(columns) <= KEPT_CELLS else None

        def logits(part: slice, out: Tensor | None = None) -> Tensor:
            made = torch.mm(rows[part], columns.T, out=out).mul_(scale)
            if bias is not None:
                made += bias
            if hide is not None:
                hide(made, part)
            return made

        for part in block_parts(len(rows), len(columns)):
            made = logits(part, None if kept is None else kept[part])
            level = made.amax(dim=1, keepdim=True)
            level.masked_fill_(level == -torch.inf, 0.0)  # all hidden: all shares are 0
            total = made.sub_(level).exp_().sum(dim=1, keepdim=True)
            found[part] = (level + total.log()).squeeze(1)
            if kept is not None:
                made.div_(total.clamp_(min=torch.finfo(total.dtype).tiny))
        ctx.scale, ctx.logits = scale, logits
        ctx.save_for_backward(rows, columns, found, kept)
        return found

    @staticmethod
    def backward(ctx: Any, by_found: Tensor) -> tuple[Tensor | None, ...]:
        rows, columns, found, kept = ctx.saved_tensors
        by_rows, by_columns = torch.empty_like(rows), torch.zeros_like(columns)
        weight = (ctx.scale * by_found)[:, None]
        level = found.masked_fill(found == -torch.inf, 0.0)[:, None]
        for part in block_parts(len(rows), len(columns)):
            share = ctx.logits(part).sub_(level[part]).exp_() if kept is None else kept[part]
            torch.mm(share, columns, out=by_rows[part])
            by_rows[part] *= weight[part]
            by_columns.addmm_(share.T, rows[part] * weight[part])
        return by_rows, by_columns, None, None, None


def block_parts(n_rows: int, n_columns: int) -> list[slice]:
    """Rows in blocks whose products with all columns are as many as are worked on at once."""
    step = max(1, BLOCK_CELLS // max(n_columns, 1))
    return [slice(first, min(first + step, n_rows)) for first in range(0, n_rows, step)]


def hide_own(logits: Tensor, part: slice) -> None:
    """Hides from row b column b."""
    logits[:, part].fill_diagonal_(-torch.inf)


def info_nce(one: Tensor, two: Tensor, temperature: float, own: Tensor | None = None) -> Tensor:
    """`mean_b[log Σ_c exp(x'_b·y'_c / τ) − x'_b·y'_own / τ]`, rows at length 1; own is row b itself unless given."""
    one, two = normalize(one), normalize(two)
    positive = torch.sum(one * (two if own is None else two.index_select(0, own)), dim=1) / temperature
    return (log_sum_exp(one, two, temperature) - positive).mean()


def softmax_loss(positive: Tensor, negatives: Tensor) -> Tensor:
    """`mean −log(e^p / (e^p + Σ e^n))` from the positive's logit and the `log_sum_exp` of the negatives.  A scalar."""
    return softplus(negatives - positive).mean()


def uniformity(rows: Tensor) -> Tensor:
    """`log mean_{a<b} exp(−2 ‖x_a − x_b‖²)` of rows at length 1; 0 where there is no pair.  A scalar, at most 0."""
    n = len(rows)
    if n < 2:
        return rows.sum() * 0.0
    others = log_sum_exp(rows, rows, 0.25, hide=hide_own)  # 2‖x − y‖² = 4 − 4 x·y
    return torch.logsumexp(others, dim=0) - 4.0 - torch.log(others.new_tensor(float(n * (n - 1))))


def distinct(index: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Each index once, ascending, and its row: the first of those that repeat it."""
    found, place = torch.unique(index, return_inverse=True)
    first = torch.full_like(found, len(index))
    first.scatter_reduce_(0, place, torch.arange(len(index), device=index.device), "amin")
    return found, rows.index_select(0, first)
