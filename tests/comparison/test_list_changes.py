from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaa.comparison.list_changes import jaccard, shared_items, telling_users
from dpaa.evaluation.concentration import most_moved


def test_by_hand() -> None:
    one = np.array([[1, 2, 3], [1, 2, -1], [-1, -1, -1], [4, 5, 6]])
    other = np.array([[3, 9, 1], [2, 1, -1], [-1, -1, -1], [7, 8, -1]])
    assert shared_items(one, other).tolist() == [2, 2, 0, 0]
    assert jaccard(one, other).tolist() == [0.5, 1.0, 1.0, 0.0]


lists = st.integers(1, 5).flatmap(
    lambda k: st.lists(
        st.tuples(*(st.lists(st.integers(0, 6), unique=True, max_size=k) for _ in range(2))), min_size=1, max_size=6
    ).map(lambda rows: [[[*side, *([-1] * (k - len(side)))] for side in row] for row in rows])
)


@given(lists)
def test_overlap_equals_sets(rows: Any) -> None:
    one, other = (np.array([row[side] for row in rows]) for side in (0, 1))
    for place, (a, b) in enumerate(rows):
        left, right = set(a) - {-1}, set(b) - {-1}
        assert shared_items(one, other)[place] == len(left & right)
        expected = len(left & right) / len(left | right) if left | right else 1.0
        assert jaccard(one, other)[place] == pytest.approx(expected)
    assert shared_items(one, other).tolist() == shared_items(other, one).tolist()


def test_most_moved_by_hand() -> None:
    gaining, losing = most_moved(np.array([0.0, 2.0, -1.0, 2.0, 5.0, -4.0]), 2)
    assert gaining.tolist() == [4, 1]
    assert losing.tolist() == [5, 2]
    gaining, losing = most_moved(np.zeros(3), 2)
    assert len(gaining) == len(losing) == 0


def test_telling_users_by_hand() -> None:
    """Gainers and losers in turn; equal gains by fewer shared items; then those whose lists share least."""
    gain = np.array([0.0, 0.5, 0.5, -0.2, 0.0, 1.0])
    shared = np.array([3, 9, 2, 5, 1, 8])
    assert telling_users(gain, shared, 6).tolist() == [5, 3, 2, 1, 4, 0]
    assert telling_users(gain, shared, 2).tolist() == [5, 3]
    assert telling_users(np.zeros(3), np.array([2, 0, 1]), 2).tolist() == [1, 2]
    assert telling_users(np.zeros(2), np.zeros(2), 9).tolist() == [0, 1]


def test_users_without_a_list_are_shown_last() -> None:
    """User 0 gains most, but against an empty list."""
    gain, shared = np.array([1.0, 0.2, 0.0]), np.array([0, 3, 2])
    listed = np.array([False, True, True])
    assert telling_users(gain, shared, 2, listed).tolist() == [1, 2]
    assert telling_users(gain, shared, 3, listed).tolist() == [1, 2, 0]


def test_overlap_of_long_lists_is_not_quadratic() -> None:
    """50,000 places against 50,000: pairs of places would be 2.5 thousand million a user."""
    items = np.arange(50_000)
    one, other = np.stack([items] * 4), np.stack([items + 20_000] * 4)
    assert shared_items(one, other).tolist() == [30_000] * 4
