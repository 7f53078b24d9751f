"""The time left is told from what was done, and not before."""

from __future__ import annotations

from collections import Counter

import pytest

from dpaa.frontier.pace import Pace


def test_what_is_left_is_told_once_something_of_each_kind_was_done() -> None:
    now = [100.0]
    pace = Pace(lambda: now[0])

    def work(kind: str, seconds: float) -> None:
        with pace.timed(kind):
            now[0] += seconds

    assert pace.in_words(Counter(slow=1)) == "0 s so far"
    work("quick", 2.0)
    assert pace.left(Counter(quick=3)) == 6.0
    assert pace.left(Counter(quick=3, slow=1)) is None  # nothing is known of the slow ones
    work("slow", 30.0)
    work("slow", 50.0)
    assert pace.left(Counter(quick=1, slow=2)) == 2.0 + 2 * 40.0
    assert pace.in_words(Counter(quick=1, slow=4)) == "82 s so far, about 3 min left"
    assert pace.left(Counter(quick=0, other=0)) == 0.0


def test_what_is_broken_off_does_not_count() -> None:
    now = [0.0]
    pace = Pace(lambda: now[0])
    with pytest.raises(KeyboardInterrupt), pace.timed("slow"):
        raise KeyboardInterrupt
    assert pace.left(Counter(slow=1)) is None
