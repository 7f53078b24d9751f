from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dpaa.graph import reference
from dpaa.graph.kernels import top_k

few_values = st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 1.0, 2.0])


@given(
    scores=hnp.arrays(np.float32, hnp.array_shapes(min_dims=2, max_dims=2, max_side=9), elements=few_values),
    k=st.integers(1, 12),
)
def test_ties_go_to_the_lower_column(scores: np.ndarray, k: int) -> None:
    values, columns = top_k(torch.from_numpy(scores.copy()), k)
    expected = reference.top_k(scores.astype(np.float64), k)
    np.testing.assert_array_equal(columns.numpy(), expected)
    for row, found in enumerate(expected):
        taken = found >= 0
        np.testing.assert_array_equal(values[row].numpy()[taken], scores[row][found[taken]])
        assert (values[row].numpy()[~taken] == -np.inf).all()


@pytest.mark.parametrize("block", [1, 3, 7, 50])
def test_block_size_does_not_change_the_lists(block: int) -> None:
    scores = torch.from_numpy(np.random.default_rng(0).integers(0, 5, (50, 40)).astype(np.float32))
    whole = top_k(scores, 10)[1]
    parts = torch.cat([top_k(part, 10)[1] for part in scores.split(block)])
    assert torch.equal(whole, parts)
