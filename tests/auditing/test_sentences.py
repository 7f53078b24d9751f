"""An audit in plain sentences."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpaa.auditing.audit import audit
from dpaa.auditing.interactions import interactions
from dpaa.auditing.sentences import lists_in_words, log_in_words, moments
from dpaa.auditing.skew import skew
from tests.auditing.examples import LISTS, LOG


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ([1700000000, 1700000001], ["2023-11-14 22:13:20", "2023-11-14 22:13:21"]),
        ([1700000000000.0], ["2023-11-14 22:13:20"]),
        ([1700006400000000], ["2023-11-15"]),
        ([1700006400000000000, 1700000000000000000], ["2023-11-15 00:00:00", "2023-11-14 22:13:20"]),
        (["2024-05-01T00:00:00+00:00", "2024-05-02T00:00:00+00:00"], ["2024-05-01", "2024-05-02"]),
        (["2024-05-01T00:00:00+00:00", "2024-05-02T10:30:00+00:00"], ["2024-05-01 00:00:00", "2024-05-02 10:30:00"]),
        ([20240131, 20240201], ["20240131", "20240201"]),
        ([3, 1700000000], ["3", "1700000000"]),
        ([0.5], ["0.5"]),
        ([], []),
    ],
)
def test_times_for_people(times: list[str | float], said: list[str]) -> None:
    """Seconds, milli-, micro- and nanoseconds since 1970 are dates; other numbers stay what they are."""
    assert moments(times) == said


# ---------------------------------------------------------------------- the log and the lists


def test_the_log_in_words() -> None:
    said = log_in_words(skew(interactions(LOG), periods=2))
    assert "Half of the interactions are on 2 items (40.0 % of them), 80 % on 3 (60.0 %)" in said[2]
    assert said[3].startswith("Gini coefficient 0.320:")
    assert said[4].startswith("3 items have a single interaction (60.0 %)")
    assert said[-2].startswith("The median user has 2 items in the history (a tenth of the users at most 1, a tenth")
    assert "the concentration shrinks: from the first to the last of 2 periods the most popular fifth goes" in said[-1]
    assert "from 60.0 % to 40.0 % of the interactions, niche items from 20.0 % to 20.0 %" in said[-1]


@pytest.mark.parametrize(
    ("first", "last", "verdict"),
    [(0.4, 0.6, "grows"), (0.6, 0.4, "shrinks"), (0.5, 0.52, "hardly changes"), (0.5, 0.48, "hardly changes")],
)
def test_a_twentieth_is_a_change_over_time(first: float, last: float, verdict: str) -> None:
    log = skew(interactions(LOG), periods=2)
    ends = [replace(one, log_head_share=share) for one, share in zip(log.periods, (first, last), strict=True)]
    assert f"the concentration {verdict}:" in log_in_words(replace(log, periods=ends))[-1]


def test_what_is_not_there_is_not_told() -> None:
    log = replace(skew(interactions(LOG.drop("timestamp"))), items_once=0)
    said = " ".join(log_in_words(log))
    for part in ("single interaction", "not counted above", "Over time"):
        assert part not in said
    assert "1 more item is known but has no interaction here and is not counted above." in log_in_words(
        replace(log, items_without=1)
    )


def test_a_small_share_keeps_its_digits() -> None:
    log = skew(interactions(LOG))
    for share, told in ((0.00042, "0.042 %"), (0.001, "0.1 %"), (0.00456, "0.5 %"), (0.0, "0.0 %"), (1.0, "100.0 %")):
        assert f"(1) has {told} of the interactions" in log_in_words(replace(log, log_head_share=share))[1]


@pytest.mark.parametrize(
    ("lift", "verdict"),
    [
        (0.04, "the list is about as popular as the history"),
        (-0.04, "the list is about as popular as the history"),
        (0.05, "the list is 5 % more popular than the history"),
        (-0.3, "the list is 30 % less popular than the history"),
        (12.345, "the list is 1,234 % more popular than the history"),
    ],
)
def test_lists_in_words(lift: float, verdict: str) -> None:
    found = audit(LOG, LISTS)
    assert found.recommendations is not None
    said = lists_in_words(found.log, replace(found.recommendations, popularity_lift=lift))
    assert said[1].startswith(f"For the average user {verdict}: a recommended item has 2.7 interactions on average")
    assert "has 40.0 % of the interactions and 33.3 % of the recommendations" in said[3]


def test_lists_of_newcomers_are_held_against_no_history() -> None:
    found = audit(LOG, LISTS)
    assert found.recommendations is not None
    said = lists_in_words(found.log, replace(found.recommendations, popularity_lift=float("nan")))
    assert len(said) == 3
    assert not any("history" in sentence for sentence in said)
