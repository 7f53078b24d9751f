from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaa.evaluation import bias
from dpaa.evaluation.metrics import ACCURACY, hit, ndcg, recall


@st.composite
def hits_and_relevant(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    k = draw(st.integers(1, 8))
    rows = draw(st.lists(st.lists(st.booleans(), min_size=k, max_size=k), min_size=1, max_size=5))
    hits = np.array(rows, dtype=bool)
    relevant = np.array([draw(st.integers(max(1, int(row.sum())), 12)) for row in hits])
    return hits, relevant


def test_toy_case() -> None:
    hits, relevant = np.array([[True, False, True]]), np.array([4])
    assert recall(hits, relevant).item() == 0.5
    assert hit(hits, relevant).item() == 1.0
    assert ndcg(hits, relevant).item() == pytest.approx(0.7039, abs=1e-4)


@given(hits_and_relevant())
def test_all_metrics_lie_between_0_and_1(case: tuple[np.ndarray, np.ndarray]) -> None:
    for formula in ACCURACY.values():
        values = formula(*case)
        assert values.shape == (len(case[0]),)
        assert (values >= 0).all()
        assert (values <= 1 + 1e-12).all()


@given(hits_and_relevant(), st.data())
def test_ndcg_never_rises_when_a_hit_moves_down(case: tuple[np.ndarray, np.ndarray], data: st.DataObject) -> None:
    hits, relevant = case
    k = hits.shape[1]
    place = data.draw(st.integers(0, k - 1))
    later = data.draw(st.integers(place, k - 1))
    moved = hits.copy()
    lower = hits[:, place] & ~hits[:, later]
    moved[lower, place], moved[lower, later] = False, True
    assert (ndcg(moved, relevant) <= ndcg(hits, relevant) + 1e-12).all()
    np.testing.assert_array_equal(recall(moved, relevant), recall(hits, relevant))


@given(hits_and_relevant())
def test_one_more_hit_never_hurts(case: tuple[np.ndarray, np.ndarray]) -> None:
    hits, relevant = case
    more = hits.copy()
    more[:, -1] = True
    enough = np.maximum(relevant, more.sum(axis=1))
    for formula in ACCURACY.values():
        assert (formula(more, enough) >= formula(hits, enough)).all()


@given(st.integers(1, 10), st.integers(1, 10))
def test_a_perfect_list_has_ndcg_1(k: int, relevant: int) -> None:
    hits = np.arange(k)[None] < relevant
    assert ndcg(hits, np.array([relevant])).item() == pytest.approx(1.0)


def test_bias_by_hand() -> None:
    lists = np.array([[0, 1], [0, -1], [-1, -1]])
    counts, popular = np.array([10, 2, 5]), np.array([True, False, False])
    assert bias.arp(lists, counts) == pytest.approx((6 + 10) / 2)
    assert bias.aplt(lists, popular) == pytest.approx((0.5 + 0) / 2)
    assert bias.coverage(lists, 3) == pytest.approx(2 / 3)
    assert np.isnan(bias.arp(np.full((2, 2), -1), counts))
