"""What lists are measured against: rows and users, hits, groups of items, and what could have been recommended."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaa.evaluation.context import GroundTruth

COUNTS = np.array([6, 2, 1, 1, 0])  # items 0 and 1 have 80 % of the interactions: they are popular


def keys(*pairs: tuple[int, int]) -> np.ndarray:
    return np.array(sorted(user * len(COUNTS) + item for user, item in pairs), dtype=np.int64)


@pytest.fixture
def truth() -> GroundTruth:
    """Two lists, of users 4 and 1; user 0 has a history and no list."""
    history = (np.array([0, 0, 1, 1, 4]), np.array([2, 3, 0, 1, 3]))
    return GroundTruth(np.array([4, 1]), 5, COUNTS, keys((1, 2), (4, 0), (4, 2)), history, history)


def test_rows_are_those_of_the_users_in_their_order(truth: GroundTruth) -> None:
    row, item = truth.relevant_pairs
    assert (row.tolist(), item.tolist()) == ([1, 0, 0], [2, 0, 2])
    assert truth.relevant_per_row().tolist() == [2, 1]
    assert truth.relevant_per_row(truth.popular).tolist() == [1, 0]
    assert truth.history_count is not None
    assert truth.history_count.tolist() == [1.0, 4.0]  # item 3; items 0 and 1
    assert truth.history_bands is not None
    assert truth.history_bands.tolist() == [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]]


def test_hits_cuts_and_groups_by_hand(truth: GroundTruth) -> None:
    at = truth.context(np.array([[2, 1, 0], [0, -1, 2]]))
    assert at.hits.tolist() == [[True, False, True], [False, False, True]]
    assert at.cut(2).hits.tolist() == [[True, False], [False, False]]
    assert at.exposure.tolist() == [2, 1, 2, 0, 0]
    assert at.mean_count.tolist() == [3.0, 3.5]
    popular = at.of_items(truth.popular)  # user 1 has no popular item to find
    assert (popular.hits.tolist(), popular.relevant.tolist()) == ([[False, False, True]], [1])
    assert truth.users[popular.rows].tolist() == [4]
    assert at.of_items(None).relevant.tolist() == [2, 1]


pairs = st.sets(st.tuples(st.integers(0, 5), st.integers(0, 4)), max_size=20)


@given(users=st.permutations(range(6)), wanted=pairs, n=st.integers(1, 6), seed=st.integers(0, 999))
def test_among_equals_sets(users: list[int], wanted: set[tuple[int, int]], n: int, seed: int) -> None:
    lists = np.random.default_rng(seed).integers(-1, 5, (n, 4))
    truth = GroundTruth(np.array(users[:n]), 6, COUNTS, np.zeros(0, dtype=np.int64))
    expected = [[(user, item) in wanted for item in row] for user, row in zip(users[:n], lists.tolist(), strict=True)]
    assert truth.among(lists, keys(*wanted)).tolist() == expected


@given(
    users=st.permutations(range(6)), masked=pairs, n=st.integers(1, 6), listed=st.none() | st.sets(st.integers(0, 4))
)
def test_what_could_be_recommended_equals_sets(
    users: list[int], masked: set[tuple[int, int]], n: int, listed: set[int] | None
) -> None:
    hidden = tuple(np.array([pair[side] for pair in sorted(masked)], dtype=np.int64) for side in (0, 1))
    candidates = None if listed is None else np.array(sorted(listed), dtype=np.int64)
    truth = GroundTruth(np.array(users[:n]), 6, COUNTS, keys(), masked=(hidden[0], hidden[1]), candidates=candidates)
    free = {(user, item) for user in users[:n] for item in (range(5) if listed is None else listed)} - masked
    assert truth.available is not None
    assert truth.available.tolist() == [sum(item > 1 for _, item in free), sum(item <= 1 for _, item in free)]
