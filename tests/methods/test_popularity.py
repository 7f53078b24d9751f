from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from dpaa.methods.popularity import capped_inverse


@given(counts=st.lists(st.integers(0, 1000), min_size=1, max_size=30), quantile=st.floats(0, 1))
def test_weights_never_rise_with_popularity(counts: list[int], quantile: float) -> None:
    count = torch.tensor(counts, dtype=torch.float32)
    weight = capped_inverse(count, quantile)[count.argsort(stable=True)]
    assert (weight.diff() <= 0).all()
    assert weight.max() == 1
    assert (weight > 0).all()
