from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dpaa.graph.cooccurrence import LARGEST_BITMAP, KnownPairs, Lists, in_common


@given(seed=st.integers(0, 100))
def test_in_common_equals_the_dense_product(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m, columns = rng.integers(1, 12, 3)
    one, two = rng.random((n, columns)) < 0.3, rng.random((m, columns)) < 0.3
    lists = [Lists.of(*map(torch.from_numpy, np.nonzero(part)), len(part), int(columns)) for part in (one, two)]
    rows = rng.integers(0, n, 5)
    found = in_common(lists[0], torch.from_numpy(rows), lists[1])
    np.testing.assert_array_equal(found, one[rows].astype(float) @ two.T.astype(float))
    owner, column = lists[0].entries(torch.from_numpy(rows))
    again = np.zeros((5, columns), bool)
    again[owner, column] = True
    np.testing.assert_array_equal(again, one[rows])


@pytest.mark.parametrize("largest_bitmap", [0, LARGEST_BITMAP])
@given(known=st.sets(st.integers(0, 99), min_size=1), wanted=st.lists(st.integers(-9, 99), min_size=1, max_size=40))
def test_known_keys_are_found_and_no_others(largest_bitmap: int, known: set[int], wanted: list[int]) -> None:
    pairs = KnownPairs(torch.tensor(sorted(known)), 100, largest_bitmap)
    found = pairs.contain(torch.tensor([wanted, wanted]))
    assert found.tolist() == [[key in known for key in wanted]] * 2
