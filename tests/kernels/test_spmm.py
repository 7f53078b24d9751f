from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dpaa.graph import reference
from dpaa.graph.kernels import KERNELS


@pytest.mark.parametrize("kernel", KERNELS)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 12), width=st.integers(1, 40), density=st.floats(0, 1))
def test_both_kernels_give_the_weighted_sum_over_neighbours(
    kernel: str, seed: int, n: int, width: int, density: float
) -> None:
    rng = np.random.default_rng(seed)
    present = rng.random((n, n)) < density
    indptr = np.concatenate([[0], np.cumsum(present.sum(axis=1))]).astype(np.int32)
    neighbours = np.nonzero(present)[1].astype(np.int32)
    weights = rng.normal(size=len(neighbours)).astype(np.float32)
    table = rng.normal(size=(n, width)).astype(np.float32)
    found = KERNELS[kernel](*(torch.from_numpy(array) for array in (indptr, neighbours, weights, table)))
    expected = reference.propagate(indptr, neighbours, weights.astype(np.float64), table.astype(np.float64))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-5)
