from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaa.data.popularity import popular_items


@pytest.mark.parametrize(
    ("counts", "popular"),
    [
        ([50, 30, 10, 10], [True, True, False, False]),  # 80 of 100 are covered by two
        ([50, 29, 11, 10], [True, True, True, False]),
        ([1, 1, 1, 1, 1], [True, True, True, True, False]),  # ties by lower index
        ([0, 7, 0], [False, True, False]),
        ([0, 0], [False, False]),
    ],
)
def test_by_hand(counts: list[int], popular: list[bool]) -> None:
    assert popular_items(np.array(counts)).tolist() == popular


@given(st.lists(st.integers(0, 50), min_size=1, max_size=30))
def test_smallest_set_that_covers_the_share(counts: list[int]) -> None:
    found = popular_items(np.array(counts))
    total = sum(counts)
    covered = [count for count, is_popular in zip(counts, found, strict=True) if is_popular]
    assert sum(covered) >= 0.8 * total
    assert sum(covered) - min(covered, default=0) < 0.8 * total or total == 0
    assert all(
        count <= min(covered) for count, is_popular in zip(counts, found, strict=True) if not is_popular and covered
    )
