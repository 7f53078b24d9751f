"""Sparse-dense products: torch's two compiled kernels behind one signature.

`bag` is FBGEMM's `embedding_bag`, `csr` the BLAS library's CSR product (MKL on x86).  Both read int32 indices, work on
each column alone and give zero for a node without neighbours.  Which is faster depends on processor and graph: a fixed
rule (`methods._options.default_kernel`) takes `bag` at 32 or (`wide-bag`) 64 columns, on a GPU `csr`.
"""

import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Any

import torch
from torch import Tensor
from torch.optim.adam import adam

Kernel = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def bag(indptr: Tensor, neighbours: Tensor, weights: Tensor, embeddings: Tensor) -> Tensor:
    """Sum over each node's neighbours with weights, by `embedding_bag`.

    Parameters
    ----------
    indptr : (n + 1,) int32 row starts of the sparse matrix
    neighbours, weights : (slots,) int32 columns and their values
    embeddings : (columns, d)

    Returns
    -------
    (n, d)
    """
    return torch.nn.functional.embedding_bag(
        neighbours, embeddings, indptr, mode="sum", per_sample_weights=weights, include_last_offset=True
    )


def csr(indptr: Tensor, neighbours: Tensor, weights: Tensor, embeddings: Tensor) -> Tensor:
    """Sum over each node's neighbours with weights, by a compressed-row product.  Returns (n, d)."""
    return torch.mm(sparse_rows(indptr, neighbours, weights, len(embeddings)), embeddings)


def sparse_rows(indptr: Tensor, neighbours: Tensor, weights: Tensor, n_columns: int) -> Tensor:
    """A matrix of compressed rows, for torch's own products.  (n, n_columns)."""
    # The invariants hold by construction; to check them would read the whole matrix in every product.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta", category=UserWarning)
        size = len(indptr) - 1, n_columns
        return torch.sparse_csr_tensor(indptr, neighbours, weights, size, check_invariants=False)


KERNELS: dict[str, Kernel] = {"bag": bag, "wide-bag": bag, "csr": csr}
"""By the values of the hyperparameter `kernel`; `wide-bag` differs in the width of the tiles it is given."""


LEAST_SLOTS = 100_000
"""Of the matrix in a block: below, handing it to a thread costs more than it saves."""


def most_blocks(slots: int) -> int:
    """Into how many blocks a matrix of so many slots may be cut."""
    return max(1, slots // LEAST_SLOTS)


def in_row_blocks(multiply: Kernel, pool: Executor, most: int) -> Kernel:
    """Compute a product in at most so many blocks of rows at once, with about as many slots of the matrix each."""

    def product(indptr: Tensor, neighbours: Tensor, weights: Tensor, embeddings: Tensor) -> Tensor:
        blocks = min(most, most_blocks(len(neighbours)))
        if blocks < 2:
            return multiply(indptr, neighbours, weights, embeddings)
        # By slots and not by rows: a few popular items have most of them.
        wanted = torch.arange(1, blocks, dtype=torch.int64) * len(neighbours) // blocks
        cuts = torch.searchsorted(indptr, wanted.to(indptr.dtype)).tolist()
        bounds = [0, *cuts, len(indptr) - 1]

        def part(number: int) -> Tensor:
            first, last = bounds[number], bounds[number + 1]
            slots = slice(int(indptr[first]), int(indptr[last]))
            starts = indptr[first : last + 1] - indptr[first]
            return multiply(starts, neighbours[slots], weights[slots], embeddings)

        return torch.cat(list(pool.map(part, range(blocks))))

    return product


def add_rows_(table: Tensor, index: Tensor, rows: Tensor) -> Tensor:
    """`table[index[k]] += rows[k]` for k = 0, 1, … in this order; index is int64.  Returns the table.

    `index_add_` does the same in twice the time: torch has a kernel of its own for an index expanded over the columns.
    """
    return table.scatter_add_(0, index[:, None].expand(-1, table.shape[1]), rows)


USUAL_ADAM: dict[str, Any] = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8}
USUAL_ADAM |= {"fused": True, "amsgrad": False, "maximize": False}
"""Torch's defaults, in the fused kernel."""


class Adam:
    """Adam with β 0.9, 0.999 and ε 1e-8; each tensor has moments and a step count of its own.

    Parameters
    ----------
    tensors : what is updated, in place
    weight_decay : times the tensor is added to its gradient, rows without a gradient included
    """

    def __init__(self, tensors: Sequence[Tensor], weight_decay: float = 0.0) -> None:
        self.tensors, self._weight_decay = list(tensors), weight_decay
        self._mean = [torch.zeros_like(tensor) for tensor in self.tensors]
        self._square = [torch.zeros_like(tensor) for tensor in self.tensors]
        self._steps = [torch.zeros((), device=tensor.device) for tensor in self.tensors]

    @torch.no_grad()
    def update(self, index: int, gradient: Tensor, learning_rate: float) -> None:
        """Take one step of one tensor.

        Parameters
        ----------
        index : of the tensor
        gradient : of its shape
        learning_rate : of this step
        """
        # The functional form: an optimizer object would step all tensors at once, and tiles are updated one by one.
        own = [[part[index]] for part in (self._mean, self._square, self._steps)]
        rates: dict[str, Any] = {"lr": learning_rate, "weight_decay": self._weight_decay}
        adam([self.tensors[index]], [gradient], own[0], own[1], [], own[2], **rates, **USUAL_ADAM)

    def state(self) -> dict[str, Tensor]:
        """Return the moments and step counts, not copied.

        Returns
        -------
        `mean.0`, `square.0`, `steps.0`, … → tensor
        """
        parts = {"mean": self._mean, "square": self._square, "steps": self._steps}
        return {f"{part}.{index}": tensor for part, tensors in parts.items() for index, tensor in enumerate(tensors)}


def top_k(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Choose the k largest scores per row, best first, ties by lower column.

    Parameters
    ----------
    scores : (rows, columns), −inf for what must not be taken
    k : length of the lists

    Returns
    -------
    scores and int64 columns, (rows, k) each; −inf and −1 where fewer than k are left
    """
    n = scores.shape[1]
    wanted = min(k, n)
    # One more than wanted shows whether the cut runs through a tie; only then does the choice need care.
    values, columns = torch.topk(scores, min(wanted + 1, n), dim=1)
    if wanted < n:
        tied = values[:, wanted - 1] == values[:, wanted]
        values, columns = values[:, :wanted], columns[:, :wanted]
        rows = tied.nonzero().squeeze(1)
        if len(rows):
            columns[rows] = _lowest_columns_at_the_cut(scores[rows], values[rows, -1:], wanted)
            values[rows] = torch.gather(scores[rows], 1, columns[rows])
    # Equal scores inside the list: order by column first, then stably by score.
    columns, by_column = torch.sort(columns, dim=1)
    values, by_score = torch.sort(torch.gather(values, 1, by_column), dim=1, descending=True, stable=True)
    columns = torch.gather(columns, 1, by_score)
    columns[values == -torch.inf] = -1
    if wanted < k:
        values = torch.nn.functional.pad(values, (0, k - wanted), value=-torch.inf)
        columns = torch.nn.functional.pad(columns, (0, k - wanted), value=-1)
    return values, columns


def _lowest_columns_at_the_cut(scores: Tensor, cut: Tensor, k: int) -> Tensor:
    """Everything above the cut, and of what equals it the lowest columns, k in all.  Returns (rows, k) in any order."""
    # What is above the cut is in every list; counting along the columns then takes the leftmost of the equal ones.
    above, equal = scores > cut, scores == cut
    missing = k - above.sum(dim=1, keepdim=True)
    taken = above | (equal & (equal.cumsum(dim=1) <= missing))
    return taken.nonzero()[:, 1].view(len(scores), k)
