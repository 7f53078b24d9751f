"""Bias: cases worked by hand, other people's definitions, and laws."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaa.errors import InputError
from dpaa.evaluation import bias
from dpaa.evaluation.context import GroundTruth
from dpaa.evaluation.metrics import METRICS, popularity_lift

# Five items, 20 interactions; 10 + 6 = 80 %, so the first two are popular; item 4 never occurs.
COUNTS = np.array([10, 6, 3, 1, 0])
POPULAR = np.array([True, True, False, False, False])
# Three users: a full list, one that ends early, none.
LISTS = np.array([[0, 1, 2], [0, 3, -1], [-1, -1, -1]])
EMPTY = np.full((2, 3), -1)
NOTHING = np.zeros(0, dtype=int)


@st.composite
def lists_of_items(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Lists and training counts."""
    n_items, k = draw(st.integers(1, 9)), draw(st.integers(1, 6))
    rows = []
    for _ in range(draw(st.integers(1, 6))):
        length = draw(st.integers(0, min(k, n_items)))
        rows.append(draw(st.permutations(range(n_items)))[:length] + [-1] * (k - length))
    counts = draw(st.lists(st.integers(0, 20), min_size=n_items, max_size=n_items).filter(any))
    return np.array(rows), np.array(counts)


def measured(name: str, lists: np.ndarray, counts: np.ndarray = COUNTS, **truth: Any) -> float:
    """By the table of metrics."""
    rows = len(lists)
    found = METRICS[name].formula(GroundTruth(np.arange(rows), rows, counts, NOTHING, **truth).context(lists))
    return bias.mean_of_known(found) if METRICS[name].per_user else found


# ------------------------------------------------------------------ by hand


def test_popularity_of_lists_by_hand() -> None:
    assert bias.popular_by(COUNTS).tolist() == POPULAR.tolist()
    assert bias.arp(LISTS, COUNTS) == pytest.approx(((10 + 6 + 3) / 3 + (10 + 1) / 2) / 2)
    assert measured("aplt", LISTS) == pytest.approx((1 / 3 + 1 / 2) / 2)
    assert measured("aclt", LISTS) == pytest.approx((1 + 1) / 2)
    assert measured("head_share", LISTS) == pytest.approx(2 / 5)  # the head is item 0: a fifth of four that occur


def test_spread_over_items_by_hand() -> None:
    assert bias.exposure(LISTS, 5).tolist() == [2, 1, 1, 1, 0]
    assert measured("coverage", LISTS) == pytest.approx(4 / 5)
    assert measured("coverage", LISTS, candidates=np.array([3, 4])) == pytest.approx(1 / 2)
    # 0, 1, 1, 1, 2 with factors −4, −2, 0, 2, 4: (−2 + 0 + 2 + 8) / (5 · 5).
    assert bias.gini(LISTS, 5) == pytest.approx(8 / 25)
    # Of candidates 3 and 4: counts 0 and 1.
    assert bias.gini(LISTS, 5, candidates=np.array([3, 4])) == pytest.approx(1 / 2)
    # One share of 2/5, three of 1/5.
    assert bias.entropy(LISTS, 5) == pytest.approx(0.4 * math.log2(2.5) + 0.6 * math.log2(5))


def test_equal_opportunity_by_hand() -> None:
    # User 0 wants 0 and 4, user 1 wants 1 and 3, user 2 wants 0: popular 3 with 1 hit, niche 2 with 1 hit.
    hits = np.array([[True, False, False], [False, True, False], [False, False, False]])
    relevant = np.array([0, 4, 1, 3, 0])
    popular, niche = 1 / 3, 1 / 2
    expected = abs(popular - niche) / (popular + niche)
    assert bias.pop_reo(LISTS, hits, relevant, POPULAR) == pytest.approx(expected)
    share = np.array([popular, niche])
    assert bias.pop_reo(LISTS, hits, relevant, POPULAR, "elliot") == pytest.approx(share.std() / share.mean())
    assert bias.pop_reo(LISTS, hits, relevant, POPULAR, "warprec") == pytest.approx(expected)
    # Before 1.14.1: 3 popular and 2 niche items were recommended, for 3 and 2 that were wanted.
    assert bias.pop_reo(LISTS, hits, relevant, POPULAR, "warprec-1.14.0") == 0.0
    assert math.isnan(bias.pop_reo(LISTS, hits, np.array([0, 1]), POPULAR))
    assert math.isnan(bias.pop_reo(LISTS, hits, np.array([0, 1]), POPULAR, "warprec")), "as 2.2.8 gives it"
    for old in ("warprec-2.1", "warprec-1.14.0"):
        assert bias.pop_reo(LISTS, hits, np.array([0, 1]), POPULAR, old) == 0.0  # type: ignore[arg-type]
    assert bias.pop_reo(LISTS, hits, relevant, POPULAR, "warprec-2.1") == pytest.approx(expected)
    assert math.isnan(bias.pop_reo(LISTS, np.zeros_like(hits), relevant, POPULAR))


def test_statistical_parity_by_hand() -> None:
    # Three users × (3 niche, 2 popular) items, less what was masked: item 4 once, item 0 twice, item 1 once.
    masked = np.array([0, 0, 1, 2]), np.array([4, 0, 0, 1])
    available = bias.available_pairs(POPULAR, 3, None, masked[1])
    assert available.tolist() == [9 - 1, 6 - 3]
    niche, popular = 2 / 8, 3 / 3
    assert measured("pop_rsp", LISTS, masked=masked) == pytest.approx((popular - niche) / (popular + niche))
    assert bias.available_pairs(POPULAR, 3, np.array([0, 4]), np.array([4, 1])).tolist() == [2, 3]
    everything = np.repeat(np.arange(3), 3), np.tile([2, 3, 4], 3)
    assert math.isnan(measured("pop_rsp", LISTS, masked=everything)), "no niche item could be recommended"


def test_popularity_lift_by_hand() -> None:
    # Lists with mean counts 9, 2 and 5, and none; histories with 6, 4 and 3, and none.
    counts, lists = np.array([9, 2, 5, 6, 4, 3]), np.array([[0], [1], [-1], [2]])
    truth = GroundTruth(np.arange(4), 4, counts, NOTHING, history=(np.array([0, 1, 2]), np.array([3, 4, 5])))
    np.testing.assert_allclose(popularity_lift(truth.context(lists)), [0.5, -0.5, np.nan, np.nan])


def test_upd_by_hand() -> None:
    # Item 0 alone has half of the interactions: it is the head; item 1 the middle; the others the tail.
    band = bias.popularity_bands(COUNTS)
    assert band.tolist() == [2, 1, 0, 0, 0]
    row, place = np.nonzero(LISTS >= 0)
    shares = bias.band_shares(row, LISTS[row, place], band, 3)
    np.testing.assert_allclose(shares, [[1 / 3, 1 / 3, 1 / 3], [1 / 2, 0, 1 / 2], [np.nan] * 3])
    history = np.array([[1 / 3, 1 / 3, 1 / 3], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    np.testing.assert_allclose(bias.upd(shares, history), [0.0, 1.0, np.nan], atol=1e-7)
    # Half in common: m = (3/4, 1/4); ½ (½ log2(2/3) + ½ log2 2) + ½ log2(4/3) = 0.3113.
    one, other = np.array([[0.5, 0.5, 0.0]]), np.array([[1.0, 0.0, 0.0]])
    assert bias.upd(one, other).item() == pytest.approx(math.sqrt(0.311278), abs=1e-5)


def test_nothing_recommended_is_no_number() -> None:
    assert math.isnan(bias.arp(EMPTY, COUNTS))
    assert math.isnan(measured("aplt", EMPTY))
    assert math.isnan(measured("aclt", EMPTY))
    assert math.isnan(measured("head_share", EMPTY))
    assert math.isnan(bias.gini(EMPTY, 5))
    assert math.isnan(bias.entropy(EMPTY, 5))
    assert np.isnan(bias.decile_shares(EMPTY, np.zeros(5, dtype=int))).all()
    assert measured("coverage", EMPTY) == 0.0


# ------------------------------------------------------------------ other people's definitions


def test_arp_elsewhere() -> None:
    assert bias.arp(LISTS, COUNTS, "elliot") == bias.arp(LISTS, COUNTS)
    # Sums 19, 11 and 0 over lists of 3.
    assert bias.arp(LISTS, COUNTS, "recbole") == pytest.approx((19 / 3 + 11 / 3 + 0) / 3)
    new = np.array([[4, 0, 2]])
    assert bias.arp(new, COUNTS, "recbole") == pytest.approx(13 / 3)
    assert bias.arp(new, COUNTS, "warprec") == pytest.approx(14 / 3)  # an item that never occurs counts 1
    # Of four items that occur, item 0 has rank 4/4, item 2 has 2/4, item 4 none.
    assert bias.arp(new, COUNTS, "lenskit") == pytest.approx((0 + 1 + 0.5) / 3)
    # Ties share their ranks: 1, 2.5, 2.5 of 3.
    assert bias.arp(np.array([[1, 2]]), np.array([1, 5, 5]), "lenskit") == pytest.approx(2.5 / 3)


def test_gini_elsewhere() -> None:
    ours = 8 / 25
    assert bias.gini(LISTS, 5, definition="lenskit") == pytest.approx(ours)
    assert bias.gini(LISTS, 5, definition="warprec") == pytest.approx(ours * 5 / 4)
    assert bias.gini(LISTS, 5, definition="elliot") == pytest.approx(1 - ours * 5 / 4)
    # Six items with the padding: 0, 0, 1, 1, 1, 2 with factors −5 … 5: (−1 + 1 + 3 + 10) / (6 · 5).
    assert bias.gini(LISTS, 5, definition="recbole") == pytest.approx(13 / 30)


def test_entropy_elsewhere() -> None:
    bits = 0.4 * math.log2(2.5) + 0.6 * math.log2(5)
    assert bias.entropy(LISTS, 5, "warprec") == pytest.approx(bits * math.log(2))
    assert bias.entropy(LISTS, 5, "recbole") == pytest.approx(bits * math.log(2) / 4)
    # Users weigh alike: item 0 has (1/3 + 1/2)/2, items 1 and 2 a sixth each, item 3 a quarter.
    surprise = {0: math.log2(2.5), 1: math.log2(5)}
    expected = 5 / 12 * surprise[0] + (1 / 6 + 1 / 6 + 1 / 4) * surprise[1]
    assert bias.entropy(LISTS, 5, "elliot") == pytest.approx(expected)
    full = LISTS[:1]
    assert bias.entropy(full, 5, "elliot") == pytest.approx(bias.entropy(full, 5))


def test_warprec_asks_for_more_than_80_per_cent() -> None:
    assert bias.popular_by(COUNTS, "warprec").tolist() == [True, True, True, False, False]
    counts = np.array([10, 7, 3])
    assert bias.popular_by(counts, "warprec").tolist() == bias.popular_by(counts).tolist() == [True, True, False]


def test_a_definition_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InputError, match="no definition 'lenskit' of entropy; choose one of dpaa, recbole"):
        bias.entropy(LISTS, 5, "lenskit")
    with pytest.raises(InputError, match="no definition 'recbole' of pop_reo"):
        bias.pop_reo(LISTS, LISTS >= 0, np.array([0]), POPULAR, "recbole")
    with pytest.raises(InputError, match="of gini"):
        bias.gini(LISTS, 5, definition="mine")  # type: ignore[arg-type]


# ------------------------------------------------------------------ laws


@given(lists_of_items())
def test_ranges(case: tuple[np.ndarray, np.ndarray]) -> None:
    lists, counts = case
    n = len(counts)

    def within(value: float, low: float, high: float) -> bool:
        return math.isnan(value) or low - 1e-9 <= value <= high + 1e-9

    assert within(bias.arp(lists, counts), 0, counts.max())
    assert within(measured("aplt", lists, counts), 0, 1)
    assert within(measured("aclt", lists, counts), 0, lists.shape[1])
    assert within(measured("head_share", lists, counts), 0, 1)
    assert within(measured("coverage", lists, counts), 0, 1)
    assert within(bias.gini(lists, n), 0, (n - 1) / n)
    assert within(bias.entropy(lists, n), 0, math.log2(n))
    assert within(measured("pop_rsp", lists, counts, masked=(lists[:0, 0], lists[:0, 0])), 0, 1)


shares = st.lists(st.integers(0, 5), min_size=3, max_size=3).filter(any).map(lambda parts: np.array(parts) / sum(parts))


@given(shares, shares)
def test_upd_is_a_distance(one: np.ndarray, other: np.ndarray) -> None:
    there, back = bias.upd(one[None], other[None]).item(), bias.upd(other[None], one[None]).item()
    assert there == pytest.approx(back)
    assert 0.0 <= there <= 1.0
    assert (there < 1e-6) == bool(np.allclose(one, other))
    assert bias.upd(one[None], one[None]).item() == pytest.approx(0.0, abs=1e-7)
