"""Popularity and spread: cases worked by hand, and laws."""

import math
from typing import Any

import numpy as np
import pytest

from dpaa.data.pairs import popular_items
from dpaa.evaluation import GroundTruth, bias
from dpaa.evaluation.bias import TASTES, gini, head, lorenz, share_of, tastes
from dpaa.evaluation.metrics import METRICS

# Five items, 20 interactions; 10 + 6 = 80%, so the first two are popular; item 4 never occurs.
COUNTS = np.array([10, 6, 3, 1, 0])
# Three users: a full list, one that ends early, none.
LISTS = np.array([[0, 1, 2], [0, 3, -1], [-1, -1, -1]])


def measured(name: str, lists: np.ndarray, counts: np.ndarray = COUNTS, relevant: Any = (), **truth: Any) -> float:
    """By the table of metrics; relevant pairs are (user, item)."""
    rows = len(lists)
    keys = np.array(sorted(user * len(counts) + item for user, item in relevant), dtype=np.int64)
    found = METRICS[name].formula(GroundTruth(np.arange(rows), rows, counts, keys, **truth).context(lists))
    return bias.mean_of_known(found) if METRICS[name].per_user else found


def test_popularity_of_lists_by_hand() -> None:
    assert popular_items(COUNTS).tolist() == [True, True, False, False, False]
    assert measured("arp", LISTS) == pytest.approx(((10 + 6 + 3) / 3 + (10 + 1) / 2) / 2)
    assert measured("aplt", LISTS) == pytest.approx((1 / 3 + 1 / 2) / 2)
    assert measured("aclt", LISTS) == pytest.approx((1 + 1) / 2)
    assert measured("head_share", LISTS) == pytest.approx(2 / 5)  # the head is item 0: a fifth of four that occur


def test_spread_over_items_by_hand() -> None:
    assert measured("coverage", LISTS) == pytest.approx(4 / 5)
    assert measured("coverage", LISTS, candidates=np.array([3, 4])) == pytest.approx(1 / 2)
    # 0, 1, 1, 1, 2 with factors −4, −2, 0, 2, 4: (−2 + 0 + 2 + 8) / (5 · 5).
    assert measured("gini", LISTS) == pytest.approx(8 / 25)
    assert measured("gini", LISTS, candidates=np.array([3, 4])) == pytest.approx(1 / 2)  # counts 0 and 1
    # One share of 2/5, three of 1/5.
    assert measured("entropy", LISTS) == pytest.approx(0.4 * math.log2(2.5) + 0.6 * math.log2(5))


def test_equal_opportunity_by_hand() -> None:
    # Popular: 3 relevant pairs with 1 hit; niche: 2 with 1 hit.
    relevant = [(0, 0), (0, 4), (1, 1), (1, 3), (2, 0)]
    assert measured("pop_reo", LISTS, relevant=relevant) == pytest.approx((1 / 2 - 1 / 3) / (1 / 2 + 1 / 3))
    assert math.isnan(measured("pop_reo", LISTS, relevant=[(0, 0)])), "no niche item is relevant"
    assert math.isnan(measured("pop_reo", LISTS, relevant=[(2, 0), (2, 4)])), "nothing was hit"


def test_exposure_of_groups_by_hand() -> None:
    relevant, of_b = [(0, 0), (0, 4), (1, 1), (1, 3), (2, 0)], np.array([False, False, False, True, True])
    groups, worth = {"group=a": ~of_b, "group=b": of_b}, 1 / math.log2(3)
    shown = worth / (2 + 2 * worth + 1 / 2)  # item 3 at rank 2; ranks 1, 2, 3 and 1, 2 are filled
    assert measured("exposure", LISTS, relevant=relevant, groups=groups) == pytest.approx(shown / (2 / 5))
    few = {"groups": groups, "candidates": np.arange(4)}
    assert measured("exposure_of_catalogue", LISTS, relevant=relevant, **few) == pytest.approx(shown / (1 / 4))
    loss = measured("exposure_loss", LISTS, relevant=relevant, groups=groups)
    assert loss == pytest.approx(2 * (shown - 2 / 5) ** 2)
    assert math.isnan(measured("exposure", LISTS, groups=groups)), "nobody likes anything"
    assert math.isnan(measured("exposure", LISTS, relevant=relevant)), "no groups"


def test_statistical_parity_by_hand() -> None:
    # Three users × (3 niche, 2 popular) items, less what was masked: item 4 once, item 0 twice, item 1 once.
    masked = np.array([0, 0, 1, 2]), np.array([4, 0, 0, 1])
    niche, popular = 2 / 8, 3 / 3
    assert measured("pop_rsp", LISTS, masked=masked) == pytest.approx((popular - niche) / (popular + niche))
    everything = np.repeat(np.arange(3), 3), np.tile([2, 3, 4], 3)
    assert math.isnan(measured("pop_rsp", LISTS, masked=everything)), "no niche item could be recommended"


def test_upd_by_hand() -> None:
    # Item 0 alone has half of the interactions: it is the head; item 1 the middle; the others the tail.
    band = bias.popularity_bands(COUNTS)
    assert band.tolist() == [2, 1, 0, 0, 0]
    row, rank = np.nonzero(LISTS >= 0)
    shares = bias.band_shares(row, LISTS[row, rank], band, 3)
    np.testing.assert_allclose(shares, [[1 / 3, 1 / 3, 1 / 3], [1 / 2, 0, 1 / 2], [np.nan] * 3])
    history = np.array([[1 / 3, 1 / 3, 1 / 3], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    np.testing.assert_allclose(bias.jensen_shannon(shares, history), [0.0, 1.0, np.nan], atol=1e-7)
    # Half in common: m = (3/4, 1/4); ½ (½ log2(2/3) + ½ log2 2) + ½ log2(4/3) = 0.3113.
    one, other = np.array([[0.5, 0.5, 0.0]]), np.array([[1.0, 0.0, 0.0]])
    assert bias.jensen_shannon(one, other).item() == pytest.approx(math.sqrt(0.311278), abs=1e-5)


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
