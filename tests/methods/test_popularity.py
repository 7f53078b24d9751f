from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dpaa.methods._popularity import capped_inverse


@given(counts=st.lists(st.integers(0, 1000), min_size=1, max_size=30), quantile=st.floats(0, 1))
def test_weights_never_rise_with_popularity(counts: list[int], quantile: float) -> None:
    count = torch.tensor(counts, dtype=torch.float32)
    weight = capped_inverse(count, quantile)[count.argsort(stable=True)]
    assert (weight.diff() <= 0).all()
    assert weight.max() == 1
    assert (weight > 0).all()


@pytest.mark.parametrize(
    ("quantile", "expected"),
    [(0.5, [0.5, 1.0, 1.0]), (1.0, [0.1, 0.2, 1.0]), (0.0, [1.0, 1.0, 1.0]), (0.75, [1 / 6, 2 / 6, 1.0])],
)
def test_capped_inverse_by_hand(quantile: float, expected: list[float]) -> None:
    """Counts 9, 4 and 0 become 10, 5 and 1, their inverses 1, 2 and 10; three quarters lie at 6."""
    assert capped_inverse(torch.tensor([9.0, 4.0, 0.0]), quantile).tolist() == pytest.approx(expected)
