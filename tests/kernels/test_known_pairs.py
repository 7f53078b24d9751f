from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dpaa.graph.cooccurrence import LARGEST_BITMAP, KnownPairs


@pytest.mark.parametrize("largest_bitmap", [0, LARGEST_BITMAP])
@given(known=st.sets(st.integers(0, 99), min_size=1), wanted=st.lists(st.integers(-9, 99), min_size=1, max_size=40))
def test_known_keys_are_found_and_no_others(largest_bitmap: int, known: set[int], wanted: list[int]) -> None:
    pairs = KnownPairs(torch.tensor(sorted(known)), 100, largest_bitmap)
    found = pairs.contain(torch.tensor([wanted, wanted]))
    assert found.tolist() == [[key in known for key in wanted]] * 2
