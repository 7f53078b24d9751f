"""One contrastive primitive: how likely a row's own column is among many, by blocks of rows.

    log Σ_c exp(x_b·y_c / τ + bias_c)

Beyond a few millions no matrix of all rows × all columns is ever held: the products are made again block by block on
the way back.  InfoNCE, sampled softmax and the uniformity of a set of vectors are a line each on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize, softplus

from dpaa.graph.bipartite import BipartiteGraph, EdgeWeights
from dpaa.graph.propagation import Propagation

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


def others(index: Tensor | None, rows: Tensor) -> tuple[Tensor, Tensor, Tensor, Hide]:
    """A batch's rows as columns for one another, each distinct one (`index` tells which; None: all) multiplied once.

    The distinct indices, their rows, the log of how often each occurs (a bias), and what hides from row b its own one.
    """
    if index is None:
        index = torch.arange(len(rows), device=rows.device)
    found, place, counts = torch.unique(index, return_inverse=True, return_counts=True)
    times = counts.to(rows.dtype)
    without_own = torch.log1p(-1.0 / times).index_select(0, place)  # log((n − 1) / n): −inf where there is no other

    def hide(logits: Tensor, part: slice) -> None:
        logits[torch.arange(len(logits), device=logits.device), place[part]] += without_own[part]

    return found, rows.index_select(0, _first_of_each(found, place)), times.log(), hide


def info_nce(
    one: Tensor, two: Tensor, temperature: float, own: Tensor | None = None, times: Tensor | None = None
) -> Tensor:
    """`mean_b[log Σ_c exp(x'_b·y'_c / τ) − x'_b·y'_own / τ]`, rows at length 1; own is row b itself unless given.

    `times` is how often each row counts in the mean: once unless given.
    """
    one, two = normalize(one), normalize(two)
    positive = torch.sum(one * (two if own is None else two.index_select(0, own)), dim=1) / temperature
    terms = log_sum_exp(one, two, temperature) - positive
    return terms.mean() if times is None else torch.dot(terms, (times / times.sum()).to(terms.dtype))


def softmax_loss(positive: Tensor, negatives: Tensor) -> Tensor:
    """`mean −log(e^p / (e^p + Σ e^n))` from the positive's logit and the `log_sum_exp` of the negatives.  A scalar."""
    return softplus(negatives - positive).mean()


def uniformity(rows: Tensor) -> Tensor:
    """`log mean_{a<b} exp(−2 ‖x_a − x_b‖²)` of rows at length 1; 0 where there is no pair.  A scalar, at most 0."""
    if len(rows) < 2:
        return rows.sum() * 0.0
    found: Tensor = _Uniformity.apply(rows)  # type: ignore[no-untyped-call]
    return found


class _Uniformity(torch.autograd.Function):
    """Every pair once, by blocks; the gradient is made on the way there: half the products of the primitive."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        total, by_rows, n = rows.new_zeros(()), torch.zeros_like(rows), len(rows)
        for part in block_parts(n, n):
            rest = slice(part.start, n)
            near = torch.mm(rows[part], rows[rest].T).sub_(1.0).mul_(4.0).exp_()  # −2‖x − y‖² = 4 x·y − 4
            near[:, : part.stop - part.start].triu_(diagonal=1)
            total += near.sum()
            by_rows[part].addmm_(near, rows[rest])
            by_rows[rest].addmm_(near.T, rows[part])
        ctx.save_for_backward(by_rows.mul_(4.0 / total))
        return torch.log(total * (2.0 / (n * (n - 1))))

    @staticmethod
    def backward(ctx: Any, by_found: Tensor) -> Tensor:
        (by_rows,) = ctx.saved_tensors
        return torch.mul(by_found, by_rows)


def distinct(index: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Each index once, ascending, and its row: the first of those that repeat it."""
    found, place = torch.unique(index, return_inverse=True)
    return found, rows.index_select(0, _first_of_each(found, place))


def _first_of_each(found: Tensor, place: Tensor) -> Tensor:
    """Where each distinct one stands first, from the places of all among them.  (distinct,)."""
    first = torch.full_like(found, len(place))
    return first.scatter_reduce_(0, place, torch.arange(len(place), device=place.device), "amin")


def same_sign_noise(length: float, generator: torch.Generator) -> Callable[[Tensor], Tensor]:
    """A change of layers that moves every row by so much, within its orthant: `x + ε sign(x) v / ‖v‖`, v uniform."""

    def changed(layer: Tensor) -> Tensor:
        drawn = normalize(torch.rand(layer.shape, generator=generator, device=layer.device))
        return layer + drawn.mul_(layer.detach().sign()).mul_(length)

    return changed


def noisy_readout(
    propagation: Propagation, table: Tensor, noise: float, generator: torch.Generator, with_first: bool, nodes: Tensor
) -> Tensor:
    """The mean of layers to each of which noise is added before it is handed on, of these nodes.  (nodes, d)."""
    layers = propagation.differentiable_layers(table, same_sign_noise(noise, generator))
    return mean_of_layers([layer.index_select(0, nodes) for layer in layers], with_first)


def moved(rows: Tensor, values: Tensor) -> Tensor:
    """These values, with the gradient of the rows.

    Layers are linear in the table, so noise moves a read-out by what does not depend on the table (but for signs, which
    have no gradient): the way back of a noisy read-out is that of the clean one, and needs no second walk.
    """
    return rows + (values - rows).detach()


def mean_of_layers(layers: Sequence[Tensor], with_first: bool) -> Tensor:
    """Their mean, layer 0 included or not (it is all there is where nothing is propagated).  (n_nodes, d)."""
    counted = list(layers) if with_first or len(layers) == 1 else list(layers[1:])
    total = counted[0]
    for layer in counted[1:]:
        total = total + layer
    return total / len(counted)


def thinned_weights(graph: BipartiteGraph, dropped: float, generator: torch.Generator) -> EdgeWeights:
    """LightGCN's weights on the graph without a share of its edges, degrees counted there; 0 for what is left out."""
    kept = int(graph.n_edges * (1.0 - dropped))
    count = torch.zeros(graph.n_edges, device=graph.edge_user.device)
    chosen = torch.randperm(graph.n_edges, generator=generator, device=count.device)[:kept]
    count[chosen] = graph.edge_count[chosen]
    weight = count.clone()
    for side, n in ((graph.edge_user, graph.n_users), (graph.edge_item, graph.n_items)):
        degree = torch.zeros(n, device=count.device).index_add_(0, side, count)
        weight *= degree.clamp(min=1e-12).rsqrt().masked_fill(degree == 0, 0.0).index_select(0, side)
    return EdgeWeights(weight)
