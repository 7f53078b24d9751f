from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dpaa.data.pairs import Pairs

some_pairs = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=40)


@given(some_pairs)
def test_of_is_the_sorted_set(pairs: list[tuple[int, int]]) -> None:
    made = Pairs.of([user for user, _ in pairs], [item for _, item in pairs])
    assert list(zip(made.user.tolist(), made.item.tolist(), strict=True)) == sorted(set(pairs))
    assert made.user.dtype == made.item.dtype == np.int32


@given(some_pairs)
def test_counts_are_added(pairs: list[tuple[int, int]]) -> None:
    made = Pairs.of([user for user, _ in pairs], [item for _, item in pairs], np.ones(len(pairs)))
    assert made.count is not None
    for user, item, count in zip(made.user, made.item, made.count, strict=True):
        assert pairs.count((user, item)) == count


@given(some_pairs)
def test_indptr_and_keys(pairs: list[tuple[int, int]]) -> None:
    made = Pairs.of([user for user, _ in pairs], [item for _, item in pairs])
    indptr = made.indptr(9)
    assert len(indptr) == 10
    for user in range(9):
        assert set(made.item[indptr[user] : indptr[user + 1]]) == {item for other, item in pairs if other == user}
    keys = made.keys(9)
    assert (np.diff(keys) > 0).all()
    assert keys.dtype == np.int64


def test_keys_do_not_overflow() -> None:
    assert Pairs.of([2_000_000], [1_999_999]).keys(2_000_000).tolist() == [4_000_001_999_999]
