"""Curve, Gini, head and tastes against numbers worked out by hand, and laws."""

from __future__ import annotations

import numpy as np
import pytest

from dpaa.evaluation.bias import TASTES, gini, head, lorenz, share_of, tastes


def test_gini_by_hand() -> None:
    # 1, 1, 2, 4: Σ (2j − 5) c = −3 − 1 + 2 + 12 = 10, over 4 · 8
    assert gini(np.array([4, 1, 2, 1])) == pytest.approx(10 / 32)
    assert gini(np.array([7, 7, 7])) == 0.0
    assert gini(np.array([0, 0, 0, 5])) == pytest.approx(3 / 4)
    assert gini(np.array([3])) == 0.0
    assert np.isnan(gini(np.array([0, 0])))


def test_lorenz_by_hand() -> None:
    # 1, 1, 2, 4 of 8: after one item 1/8, two 2/8, three 4/8
    assert lorenz(np.array([4, 1, 2, 1]), 5).tolist() == [[0, 0], [0.25, 0.125], [0.5, 0.25], [0.75, 0.5], [1, 1]]
    assert lorenz(np.array([4, 1, 2, 1]), 9)[1].tolist() == [0.125, 0.0625]  # half of the first item


def test_the_head_is_a_fifth_of_the_items_that_occur_rounded_up() -> None:
    assert head(np.array([1, 9, 3, 0, 0])).tolist() == [False, True, False, False, False]
    assert head(np.array([5, 5, 4, 1, 1, 1])).tolist() == [True, True, False, False, False, False]
    assert head(np.array([2, 2])).tolist() == [True, False], "ties go to the lower index"
    assert head(np.ones(15)).sum() == 3, "0.2 · 15 is a little above 3 in floating point"
    assert share_of(head(np.array([1, 9, 3, 0, 0])), np.array([1, 9, 3, 0, 0])) == pytest.approx(9 / 13)
    assert np.isnan(share_of(np.array([True]), np.array([0])))


def test_tastes_by_hand() -> None:
    shares = np.array([0.1, 0.9, 0.5, np.nan, 0.6, 0.4])
    # Five users with a history, one in each outer fifth.
    assert [TASTES[taste] if taste >= 0 else None for taste in tastes(shares)] == [
        *("niche", "blockbuster", "diverse", None, "diverse", "diverse")
    ]
    assert tastes(np.array([1.0, 1.0, 1.0, 0.5, 0.2])).tolist() == [2, 2, 2, 1, 0]  # equal shares stay together
    assert tastes(np.array([0.7, 0.7])).tolist() == [1, 1]
    assert tastes(np.array([np.nan])).tolist() == [-1]
