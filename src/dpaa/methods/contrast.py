"""Contrastive losses: InfoNCE, softmax over a batch, uniformity, and two noisy views of a read-out.

Their common part is `log Σ_c exp(x_b·y_c / τ + bias_c)`, computed by blocks of rows: beyond a few millions no matrix of
all rows × all columns is ever held (a batch grows with the log), and the products are recomputed in backward.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import normalize, softplus

from dpaa.methods.graph_method import Batch, GraphMethod, Rows, WholeTable, fitted, scores
from dpaa.methods.tables import TableRows

BLOCK_CELLS = 1 << 19
"""Products that are worked on at once (2 MB)."""
KEPT_CELLS = 1 << 22
"""Products (16 MB) that are kept for backward; where there are more they are computed a second time."""
NOISE = 1
"""Number of the random stream of noise."""

Hide = Callable[[Tensor, slice], object]
"""Takes the logits of a block, (rows, columns), and the slice of its rows; sets to −inf what does not count."""


def log_sum_exp(
    rows: Tensor, columns: Tensor, temperature: float, bias: Tensor | None = None, hide: Hide | None = None
) -> Tensor:
    """`log Σ_c exp(x_b·y_c / τ + bias_c)` over the columns that are not hidden, −inf where all are.

    Parameters
    ----------
    rows, columns : (b, d) and (c, d) vectors
    temperature : τ
    bias : (c,) added to the logits
    hide : sets logits that do not count to −inf

    Returns
    -------
    (b,)
    """
    return _LogSumExp.apply(rows, columns, 1.0 / temperature, bias, hide)  # type: ignore[no-any-return, no-untyped-call]


class _LogSumExp(torch.autograd.Function):
    """Forward keeps each row's sum, and the shares in it where they are few."""

    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, columns: Tensor, scale: float, bias: Tensor | None, hide: Hide | None
    ) -> Tensor:
        sums = rows.new_empty(len(rows))
        kept = rows.new_empty(len(rows), len(columns)) if len(rows) * len(columns) <= KEPT_CELLS else None

        def logits(part: slice, out: Tensor | None = None) -> Tensor:
            block = torch.mm(rows[part], columns.T, out=out).mul_(scale)
            if bias is not None:
                block += bias
            if hide is not None:
                hide(block, part)
            return block

        for part in _block_parts(len(rows), len(columns)):
            block = logits(part, None if kept is None else kept[part])
            level = block.amax(dim=1, keepdim=True)  # taken off first: no exponential can overflow
            level.masked_fill_(level == -torch.inf, 0.0)  # all hidden: all shares are 0
            total = block.sub_(level).exp_().sum(dim=1, keepdim=True)
            sums[part] = (level + total.log()).squeeze(1)
            if kept is not None:
                block.div_(total.clamp_(min=torch.finfo(total.dtype).tiny))
        ctx.scale, ctx.logits = scale, logits
        ctx.save_for_backward(rows, columns, sums, kept)
        return sums

    @staticmethod
    def backward(ctx: Any, by_sums: Tensor) -> tuple[Tensor | None, ...]:
        rows, columns, sums, kept = ctx.saved_tensors
        # Shares of the softmax are all that both gradients need; large ones are computed again, block by
        # block.
        by_rows, by_columns = torch.empty_like(rows), torch.zeros_like(columns)
        weight = (ctx.scale * by_sums)[:, None]
        level = sums.masked_fill(sums == -torch.inf, 0.0)[:, None]
        for part in _block_parts(len(rows), len(columns)):
            share = ctx.logits(part).sub_(level[part]).exp_() if kept is None else kept[part]
            torch.mm(share, columns, out=by_rows[part])
            by_rows[part] *= weight[part]
            by_columns.addmm_(share.T, rows[part] * weight[part])
        return by_rows, by_columns, None, None, None


def _block_parts(n_rows: int, n_columns: int) -> list[slice]:
    step = max(1, BLOCK_CELLS // max(n_columns, 1))
    return [slice(first, min(first + step, n_rows)) for first in range(0, n_rows, step)]


def info_nce(
    one: Tensor, two: Tensor, temperature: float, own: Tensor | None = None, times: Tensor | None = None
) -> Tensor:
    """`mean_b[log Σ_c exp(x'_b·y'_c / τ) − x'_b·y'_own / τ]`, rows at length 1.

    Parameters
    ----------
    one, two : (b, d) and (c, d) vectors x and y
    temperature : τ
    own : (b,) which row of `two` belongs to each row of `one`; the same row by default
    times : (b,) how often each row counts in the mean; once by default

    Returns
    -------
    a scalar
    """
    one, two = normalize(one), normalize(two)
    positive = scores(one, two if own is None else two.index_select(0, own)) / temperature
    terms = log_sum_exp(one, two, temperature) - positive
    return terms.mean() if times is None else torch.dot(terms, (times / times.sum()).to(terms.dtype))


def batch_softmax(
    user: Tensor,
    item: Tensor,
    temperature: float,
    index: Tensor | None = None,
    positive: Tensor | None = None,
    log_q: Tensor | None = None,
) -> Tensor:
    """Softmax of each row's item against the items of the other rows, `mean −log(e^p / (e^p + Σ e^n))`.

    Parameters
    ----------
    user, item : (b, d) vectors, at length 1 where cosines are compared
    temperature : τ
    index : (b,) which items are the same and so no negatives of one another; none by default
    positive : (b,) the positive's score, `user·item` by default
    log_q : (any,) subtracted from the logit of a negative item, by its index

    Returns
    -------
    a scalar
    """
    index = torch.arange(len(item), device=item.device) if index is None else index
    distinct_items, inverse, counts = torch.unique(index, return_inverse=True, return_counts=True)
    times = counts.to(item.dtype)  # each distinct item is multiplied once and counts as often as it occurs
    without_own = torch.log1p(-1.0 / times).index_select(0, inverse)  # log((n − 1) / n): −inf where there is no other
    bias = times.log() if log_q is None else times.log() - log_q[distinct_items]

    def hide(logits: Tensor, part: slice) -> None:
        logits[torch.arange(len(logits), device=logits.device), inverse[part]] += without_own[part]

    columns = item.index_select(0, _first_of_each(distinct_items, inverse))
    negatives = log_sum_exp(user, columns, temperature, bias, hide)
    return softplus(negatives - (scores(user, item) if positive is None else positive) / temperature).mean()


def uniformity(rows: Tensor) -> Tensor:
    """`log mean_{a<b} exp(−2 ‖x_a − x_b‖²)` of rows at length 1; 0 where there is no pair.  A scalar, at most 0."""
    return rows.sum() * 0.0 if len(rows) < 2 else _Uniformity.apply(rows)  # type: ignore[no-untyped-call]


class _Uniformity(torch.autograd.Function):
    """Every pair once, by blocks; the gradient is computed in forward: half the products."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        total, by_rows, n = rows.new_zeros(()), torch.zeros_like(rows), len(rows)
        for part in _block_parts(n, n):
            rest = slice(part.start, n)
            kernel = torch.mm(rows[part], rows[rest].T).sub_(1.0).mul_(4.0).exp_()  # −2‖x − y‖² = 4 x·y − 4
            kernel[:, : part.stop - part.start].triu_(diagonal=1)
            total += kernel.sum()
            by_rows[part].addmm_(kernel, rows[rest])
            by_rows[rest].addmm_(kernel.T, rows[part])
        ctx.save_for_backward(by_rows.mul_(4.0 / total))
        return torch.log(total * (2.0 / (n * (n - 1))))

    @staticmethod
    def backward(ctx: Any, by_result: Tensor) -> Tensor:
        (by_rows,) = ctx.saved_tensors
        return torch.mul(by_result, by_rows)


def distinct(index: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Each index once, ascending, and its row: the first of those that repeat it."""
    values, inverse = torch.unique(index, return_inverse=True)
    return values, rows.index_select(0, _first_of_each(values, inverse))


def _first_of_each(values: Tensor, inverse: Tensor) -> Tensor:
    first = torch.full_like(values, len(inverse))
    return first.scatter_reduce_(0, inverse, torch.arange(len(inverse), device=inverse.device), "amin")


def same_sign_noise(length: float, generator: torch.Generator) -> Callable[[Tensor], Tensor]:
    """A change of layers that moves every row by so much, within its orthant: `x + ε sign(x) v / ‖v‖`, v uniform."""

    def changed(layer: Tensor) -> Tensor:
        drawn = normalize(torch.rand(layer.shape, generator=generator, device=layer.device))
        return layer + drawn.mul_(layer.detach().sign()).mul_(length)

    return changed


def mean_of_layers(layers: Sequence[Tensor], with_first: bool) -> Tensor:
    """Mean of layers, layer 0 included or not (it is all there is where nothing is propagated).  (n_nodes, d)."""
    counted = list(layers) if with_first or len(layers) == 1 else list(layers[1:])
    total = counted[0]
    for layer in counted[1:]:
        total = total + layer
    return total / len(counted)


class PopularityVectors(GraphMethod):
    """Base of methods with a vector for every count of interactions that occurs, among users and among items."""

    user_popularity: Tensor = fitted()
    item_popularity: Tensor = fitted()

    @cached_property
    def _levels(self) -> tuple[Tensor, Tensor]:
        """Index of each user's and of each item's count among those that occur."""
        graph = self.graph
        degrees = graph.user_degree, graph.item_degree
        users, items = (torch.unique(degree, return_inverse=True)[1] for degree in degrees)
        return users, items

    def popularity_vectors(self, stream: int) -> dict[str, Tensor]:
        """Draw both tables as the table of embeddings is drawn.

        Parameters
        ----------
        stream : number of the random stream

        Returns
        -------
        attribute → vectors
        """
        draw, sizes = self.generator(stream), [(int(level.max()) + 1, self.embedding_size) for level in self._levels]
        tables = [torch.empty(*size).normal_(0.0, 0.1, generator=draw) for size in sizes]
        return dict(zip(("user_popularity", "item_popularity"), tables, strict=True))


class NoisyViews(WholeTable):
    """Base of methods that contrast two noisy views, as SimGCL does."""

    noise: float = Field(default=0.1, ge=0, description="ε: length of the noise added to every layer of a view")
    temperature: float = Field(default=0.2, gt=0, description="τ of the contrast")
    include_ego: bool = Field(default=False, description="whether layer 0 is part of the read-out")

    def table_readout(self, table: Tensor, batch: Batch | None) -> Tensor:
        """The mean of layers 1 … L, or of all."""
        return mean_of_layers(list(self.tables.propagation.differentiable_layers(table)), self.include_ego)

    def views(self, batch: Batch, rows: Rows) -> tuple[Tensor, list[tuple[Tensor, ...]]]:
        """Two noisy read-outs of the batch's distinct users and positive items.

        Returns
        -------
        the distinct items, and of each view the vectors of users and of items
        """
        assert isinstance(rows, TableRows)
        user, item, *_ = batch.split(rows.readout)
        (users, user), (items, item) = distinct(batch.users, user), distinct(batch.positive, item)
        nodes, clean = torch.cat([users, items + self.graph.n_users]), torch.cat([user, item])
        views = []
        for number in (0, 1):
            noise = same_sign_noise(self.noise, self.generator(NOISE, batch.epoch, batch.number, number))
            with torch.no_grad():
                layers = self.tables.propagation.differentiable_layers(rows.table, noise)
                noisy = mean_of_layers([layer.index_select(0, nodes) for layer in layers], self.include_ego)
            # Layers are linear in the table, so noise moves a read-out by what does not depend on the table: the
            # gradient of a noisy read-out is that of the clean one, and needs no second pass.
            views.append(torch.split(clean + (noisy - clean).detach(), [len(users), len(items)]))
        return items, views
