"""The log alone: numbers worked out by hand, periods, and ranges."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaa.auditing.audit import audit
from tests.auditing.examples import LOG, logs


def test_the_log_by_hand() -> None:
    found = audit(LOG).log
    assert (found.users, found.items, found.interactions, found.items_without) == (5, 5, 10, 0)
    assert found.log_gini == pytest.approx(0.32)  # 1, 1, 1, 3, 4: −4 − 2 + 0 + 6 + 16 = 16, over 5 · 10
    assert (found.head_items, found.log_head_share, found.top_item_share) == (1, 0.4, 0.4)
    assert (found.items_for_half, found.items_for_80, found.items_once) == (2, 3, 3)
    assert found.deciles == pytest.approx([0.1, 0, 0.1, 0, 0.1, 0, 0.3, 0, 0.4, 0])
    assert found.lorenz[20] == pytest.approx([0.2, 0.1])
    assert found.lorenz[80] == pytest.approx([0.8, 0.6])
    assert len(found.lorenz) == 101
    assert found.history == pytest.approx(
        {"min": 1, "10%": 1, "25%": 1, "median": 2, "75%": 3, "90%": 3, "max": 3, "mean": 2}
    )
    assert found.popular_in_history == pytest.approx((1 + 1 + 1 + 2 / 3 + 0) / 5)
    groups = [(group.taste, group.users, group.mean, group.history_median) for group in found.tastes]
    assert groups == [("niche", 1, 0.0, 1), ("diverse", 1, pytest.approx(2 / 3), 3), ("blockbuster", 3, 1.0, 2)]


def test_periods_by_hand() -> None:
    first, second = audit(LOG, periods=2).log.periods
    assert (first.start, first.end, second.start, second.end) == (1, 5, 6, 10)
    assert (first.interactions, first.items, first.new_items) == (5, 3, 3)  # A 3, B 1, E 1
    assert first.log_gini == pytest.approx(4 / 15)
    assert (first.log_head_share, first.log_niche_share, first.new_share) == pytest.approx((0.6, 0.2, 1.0))
    assert (second.interactions, second.items, second.new_items) == (5, 4, 2)  # A 1, B 2, C 1, D 1
    assert second.log_gini == pytest.approx(3 / 20)
    assert (second.log_head_share, second.log_niche_share, second.new_share) == pytest.approx((0.4, 0.2, 0.4))
    numbers = audit(LOG, periods=2).numbers
    assert numbers["log_head_share_trend"] == pytest.approx(-0.2)
    assert numbers["log_niche_share_trend"] == pytest.approx(0.0)


def test_equal_times_stay_together() -> None:
    clumped = LOG.with_columns(timestamp=pl.Series([1, 1, 1, 1, 1, 1, 1, 2, 2, 2]))
    assert [period.interactions for period in audit(clumped, periods=5).log.periods] == [7, 3]
    once = audit(LOG.with_columns(timestamp=pl.lit(7)))
    assert once.log.periods == []
    assert "has one time only" in once.notes[0]
    assert np.isnan(once.numbers["log_head_share_trend"])
    assert audit(LOG, periods=1).log.periods == []
    assert audit(LOG.drop("timestamp")).notes == []


def test_dates_are_told_in_iso_form() -> None:
    dated = LOG.with_columns(timestamp=pl.Series([datetime(2024, 5, day, tzinfo=UTC) for day in range(1, 11)]))
    periods = audit(dated, periods=2).log.periods
    assert (periods[0].start, periods[1].end) == ("2024-05-01T00:00:00+00:00", "2024-05-10T00:00:00+00:00")


@given(logs(), st.integers(1, 12))
def test_ranges(log: pl.DataFrame, periods: int) -> None:
    found = audit(log, periods=periods)
    skew, numbers = found.log, found.numbers
    for name in ("gini", "head_share", "items_for_80_share", "items_once_share", "popular_in_history"):
        assert 0 <= numbers[f"log_{name}"] <= 1
    assert skew.log_gini < 1
    assert sum(skew.deciles) == pytest.approx(1)
    assert sum(group.users for group in skew.tastes) == skew.users
    assert len(skew.periods) <= periods
    if skew.periods:
        assert sum(period.interactions for period in skew.periods) == skew.interactions
        assert sum(period.new_items for period in skew.periods) == skew.items
        assert all(one.end < other.start for one, other in zip(skew.periods, skew.periods[1:], strict=False))
