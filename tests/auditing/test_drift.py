"""Drift by hand: two logs, one log cut at a time, distances whose answer is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from dpaa.auditing.audit import audit
from dpaa.auditing.drift import jensen_shannon
from dpaa.errors import InputError


def log(pairs: dict[str, int], first: int = 0) -> pl.DataFrame:
    """Item → how many users took it."""
    rows = [(f"u{n}", item, first + n) for item, count in pairs.items() for n in range(count)]
    return pl.DataFrame(rows, schema=["user_id", "item_id", "timestamp"], orient="row")


OLD, NEW = {"a": 6, "b": 2, "c": 1, "d": 1, "e": 2}, {"a": 1, "b": 2, "c": 8, "d": 1, "f": 4}


def test_the_distance_of_known_distributions() -> None:
    assert jensen_shannon(np.array([1.0, 2.0]), np.array([2.0, 4.0])) == pytest.approx(0)
    assert jensen_shannon(np.array([1.0, 0.0]), np.array([0.0, 5.0])) == pytest.approx(1)
    half = jensen_shannon(np.array([1.0, 0.0]), np.array([1.0, 1.0]))
    assert half == pytest.approx(np.sqrt(0.5 * (np.log2(4 / 3)) + 0.5 * (0.5 * np.log2(2 / 3) + 0.5 * np.log2(2))))


def test_two_logs() -> None:
    found = audit(log(NEW), against=log(OLD), fail_if=["drift_head_turnover>0.5", "drift_distance>0.99"])
    numbers = found.numbers
    assert numbers["drift_new_items_share"] == pytest.approx(4 / 16)
    assert numbers["drift_gone_items_share"] == pytest.approx(2 / 12)
    assert numbers["drift_head_turnover"] == 1.0  # a fifth of five items is one: a before, c now
    assert numbers["drift_head_share"] == pytest.approx(8 / 16 - 6 / 12)
    assert [check.failed for check in found.checks] == [True, False]
    assert any(sentence.startswith("Against the frame") or "Against log" in sentence for sentence in found.in_words())


def test_one_log_cut_at_a_time(tmp_path: Path) -> None:
    both = pl.concat([log(OLD), log(NEW, first=100).with_columns(pl.col("user_id") + "x")])
    cut, apart = audit(both, against="50").numbers, audit(log(NEW), against=log(OLD)).numbers
    names = [name for name in cut if name.startswith("drift_")]
    assert len(names) == 6
    assert {name: cut[name] for name in names} == pytest.approx({name: apart[name] for name in names})
    dated = both.with_columns(pl.from_epoch(pl.col("timestamp") * 86_400))
    assert audit(dated, against="1970-02-15").numbers["drift_distance"] == pytest.approx(cut["drift_distance"])


def test_what_cannot_be_compared() -> None:
    with pytest.raises(InputError, match="has no times, so it cannot be cut"):
        audit(log(NEW).drop("timestamp"), against="50")
    with pytest.raises(InputError, match=r"nothing in .* after 5000"):
        audit(log(NEW), against="5000")
    with pytest.raises(InputError, match="'2026-01-01' is none; give one such as"):
        audit(log(NEW), against="2026-01-01")
    whole = log(NEW).with_columns(pl.col("item_id").rank("dense").cast(pl.Int64))
    with pytest.raises(InputError, match=r"are text, those of .* are integers"):
        audit(whole, against=log(OLD))
    with pytest.raises(InputError, match="is about change; name an older log"):
        audit(log(NEW), fail_if=["drift_gini>0"])
