"""Pairs, notes about unusual ones, and which items are popular."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaa.data.dataset import Dataset
from dpaa.data.pairs import Pairs, popular_items

some_pairs = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=40)


@given(some_pairs)
def test_of_is_the_sorted_set(pairs: list[tuple[int, int]]) -> None:
    made = Pairs.of([user for user, _ in pairs], [item for _, item in pairs])
    assert list(zip(made.user.tolist(), made.item.tolist(), strict=True)) == sorted(set(pairs))
    assert made.user.dtype == made.item.dtype == np.int32


@given(some_pairs)
def test_users_are_neighbours_and_keys_rise(pairs: list[tuple[int, int]]) -> None:
    made = Pairs.of([user for user, _ in pairs], [item for _, item in pairs])
    for user in range(9):
        first, last = np.searchsorted(made.user, [user, user + 1])
        assert set(made.item[first:last]) == {item for other, item in pairs if other == user}
    keys = made.keys(9)
    assert (np.diff(keys) > 0).all()
    assert keys.dtype == np.int64


def test_keys_do_not_overflow() -> None:
    assert Pairs.of([2_000_000], [1_999_999]).keys(2_000_000).tolist() == [4_000_001_999_999]


def dataset(
    train: list[tuple[int, int]],
    valid: list[tuple[int, int]],
    test: list[tuple[int, int]],
    candidates: list[int] | None = None,
) -> Dataset:
    schema = {"user_id": pl.Int64, "item_id": pl.Int64}
    frames = [pl.DataFrame(pairs, schema=schema, orient="row") for pairs in (train, valid, test)]
    return Dataset.of(
        {"train": frames[0], "valid": frames[1], "test": frames[2]},
        name="x",
        candidates=None if candidates is None else pl.Series(candidates),
        about={},
    )


def test_empty_splits() -> None:
    assert list(dataset([(1, 1)], [], []).notes) == [
        "the validation split is empty: early stopping and tuning are impossible",
        "the test split is empty: nothing can be evaluated",
    ]


def test_overlap() -> None:
    found = list(dataset([(1, 1), (1, 2), (2, 2)], [(1, 1), (2, 1)], [(1, 2), (1, 1), (2, 1)]).notes)
    both = [note.partition(":")[0] for note in found]
    assert both == [
        "1 pairs are in both train and valid",
        "2 pairs are in both train and test",
        "2 pairs are in both valid and test",
    ]


def test_cold_users_and_items() -> None:
    found = list(dataset([(1, 1), (1, 2)], [(1, 3)], [(1, 4), (5, 1)], candidates=[1, 4, 8]).notes)
    assert found == [
        "1 of 2 test users have no training pair (such as 5): nothing was learned about them",
        "2 of 3 candidate items have no training pair (such as 4): they are ranked by chance",
        "1 of 2 test items have no training pair (such as 4): they are ranked by chance",
    ]


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
