"""The audit as a whole: its words, its gate and what it refuses."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import dpaa
from dpaa.auditing.audit import audit
from dpaa.auditing.names import LIST_NUMBERS, LOG_NUMBERS
from dpaa.errors import InputError
from tests.auditing.examples import LISTS, LOG


def test_public_name_and_words() -> None:
    found = dpaa.audit(LOG, LISTS, fail_if=["log_head_share>0.3", "log_gini > 0.9", "coverage@3<=80%"])
    assert isinstance(found, dpaa.Audit)
    assert [check.check.name for check in found.failed] == ["log_head_share", "coverage@3"]
    assert set(found.numbers) == {*LOG_NUMBERS, *(f"{name}@3" for name in LIST_NUMBERS)}
    assert set(dpaa.audit(LOG).numbers) == set(LOG_NUMBERS)
    words = found.in_words()
    assert words[0] == "5 users, 5 items, 10 interactions."
    assert words[1].startswith("The most popular fifth of the items (1) has 40.0 % of the interactions")
    assert any("the list is 58 % more popular than the history" in sentence for sentence in words)
    assert not any("nan" in sentence for sentence in words)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"fail_if": ["coverage@20<0.5"]}, "is about recommendations; name their file with --recs"),
        ({"periods": 0}, "periods must be at least 1, got 0"),
        ({"k": 5}, "k cuts recommended lists"),
        ({"recs": {"user_id": ["u1", "who"], "item_id": ["Q", "A"], "rank": [1, 1]}}, "has an item that the log knows"),
    ],
)
def test_refused(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        audit(LOG, **arguments)


def test_the_gate_sees_lists_that_go_to_the_head() -> None:
    """A log that is nearly even, and lists of which nearly all fall on its head."""
    log = pl.DataFrame({"user_id": [f"u{n}" for n in range(30)], "item_id": [f"i{n % 10}" for n in range(30)]})
    recs = pl.DataFrame({"user_id": [f"u{n}" for n in range(18)], "item_id": ["i0"] * 17 + ["i9"]})
    found = audit(log, recs, fail_if=["head_share@1>0.8", "log_head_share>0.8"])
    assert found.numbers["head_share@1"] == pytest.approx(17 / 18)
    assert [check.check.name for check in found.failed] == ["head_share@1"]
