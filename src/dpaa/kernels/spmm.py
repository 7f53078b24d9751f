"""Sparse times dense: the two compiled kernels that torch brings, behind one signature.

`bag` is FBGEMM's `embedding_bag`, `csr` the BLAS library's CSR product (MKL on x86).  Both read int32 indices, work on
each column alone and give zero for a node without neighbours.  Which is faster depends on processor and graph: a fixed
rule takes `bag` at 32 or (`wide-bag`) 64 columns, `dpaa train --calibrate` measures.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
from torch import Tensor

Kernel = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def bag(indptr: Tensor, neighbours: Tensor, weights: Tensor, embeddings: Tensor) -> Tensor:
    """Row v is the weighted sum over v's neighbours, by `embedding_bag`.  Returns (n, d)."""
    return torch.nn.functional.embedding_bag(
        neighbours, embeddings, indptr, mode="sum", per_sample_weights=weights, include_last_offset=True
    )


def csr(indptr: Tensor, neighbours: Tensor, weights: Tensor, embeddings: Tensor) -> Tensor:
    """The same by a compressed-row product.  Returns (n, d)."""
    n = len(indptr) - 1
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta", category=UserWarning)
        matrix = torch.sparse_csr_tensor(indptr, neighbours, weights, (n, len(embeddings)), check_invariants=False)
    return torch.mm(matrix, embeddings)


KERNELS: dict[str, Kernel] = {"bag": bag, "wide-bag": bag, "csr": csr}
"""By the names that settings use; `wide-bag` differs in the width of the tiles it is given."""
