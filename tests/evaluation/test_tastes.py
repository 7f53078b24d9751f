"""Users by the share of popular items in their histories."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dpaa.evaluation.concentration import TASTES, tastes


def test_tastes_by_hand() -> None:
    shares = np.array([0.1, 0.9, 0.5, np.nan, 0.6, 0.4])
    # Five users with a history, one in each outer fifth.
    assert [TASTES[place] if place >= 0 else None for place in tastes(shares)] == [
        *("niche", "blockbuster", "diverse", None, "diverse", "diverse"),
    ]
    assert tastes(np.array([1.0, 1.0, 1.0, 0.5, 0.2])).tolist() == [2, 2, 2, 1, 0]  # equal shares stay together
    assert tastes(np.array([0.7, 0.7])).tolist() == [1, 1]
    assert tastes(np.array([np.nan])).tolist() == [-1]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_tastes_follow_the_shares(values: list[float]) -> None:
    found = tastes(np.array(values))
    order = np.argsort(values)
    assert (np.diff(found[order]) >= 0).all()
    for value in set(values):
        assert len({int(taste) for taste, share in zip(found, values, strict=True) if share == value}) == 1
