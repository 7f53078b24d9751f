"""Splits: every pair in one of them, nothing lost, the promised sizes."""

from __future__ import annotations

import hashlib
from random import Random

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaa.data.columns import SPLITS
from dpaa.data.prepare import one_table
from dpaa.data.splits import (
    SPLIT_KINDS,
    SplitRule,
    drawn_by_id,
    drop_rare,
    leave_last,
    pair_numbers,
    random_per_user,
    split_frame,
    temporal,
    time_window,
)
from dpaa.data.tables import as_table
from dpaa.errors import InputError

pairs = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 20)), min_size=1, max_size=60, unique_by=lambda pair: pair)
rules = st.builds(
    SplitRule,
    st.sampled_from([kind for kind in SPLIT_KINDS if kind != "time-windows"]),
    st.floats(0, 0.49),
    st.floats(0, 0.49),
    st.integers(1, 3),
    support=st.integers(0, 3),
)
windows = st.builds(SplitRule, st.just("time-windows"), st.floats(0, 0.15), st.floats(0, 0.15))


def log(rows: list[tuple[int, int]], times: list[int] | None = None) -> pl.DataFrame:
    frame = pl.DataFrame(rows, schema=["user_id", "item_id"], orient="row")
    return frame.with_columns(timestamp=pl.Series(times if times is not None else range(len(rows))))


@given(pairs, rules, st.integers(0, 5), st.booleans())
def test_disjoint_and_complete(rows: list[tuple[int, int]], rule: SplitRule, seed: int, tied: bool) -> None:
    frame = log(rows, [index // 4 if tied else index for index in range(len(rows))])
    parts, _ = split_frame(frame, rule, seed, "log")
    together = [row for part in parts.values() for row in part.rows()]
    assert sorted(together) == sorted(frame.rows())
    again, _ = split_frame(frame, rule, seed, "log")
    assert all(parts[name].equals(again[name]) for name in parts)
    if rule.kind in ("random", "leave-last"):
        assert set(parts["train"]["user_id"]) == set(frame["user_id"])


@given(pairs, st.floats(0, 0.49), st.floats(0, 0.49))
def test_temporal_never_looks_ahead(rows: list[tuple[int, int]], valid: float, test: float) -> None:
    time = np.array([item for _, item in rows])  # many ties
    labels, tied = temporal(time, valid, test)
    for earlier, later in ((0, 1), (1, 2), (0, 2)):
        before, after = time[labels == earlier], time[labels == later]
        assert not len(before) or not len(after) or before.max() < after.min()
    assert (labels == 2).sum() <= round(len(time) * test)
    assert bool(tied) <= (len(set(time.tolist())) < len(time))


def test_temporal_sizes_without_ties() -> None:
    labels, tied = temporal(np.random.default_rng(0).permutation(100), 0.1, 0.2)
    assert np.bincount(labels).tolist() == [70, 10, 20]
    assert tied == 0


def test_ties_are_told() -> None:
    frame = log([(1, item) for item in range(10)], [0, 1, 2, 3, 4, 5, 6, 7, 7, 9])
    parts, notes = split_frame(frame, SplitRule("temporal", valid=0, test=0.2), 0, "log")
    assert parts["test"]["timestamp"].to_list() == [9]
    assert notes[0].startswith("1 pair at the time of a cut went to the earlier split")


def test_random_shares_hold_on_average() -> None:
    user = np.repeat(np.arange(3000, dtype=np.int32), 3)
    rng = np.random.default_rng(0)
    numbers, chances = rng.integers(0, 2**64, len(user), dtype=np.uint64), rng.random((2, 3000))
    labels = random_per_user(user, numbers, chances, 0.1, 0.2)
    share = np.bincount(labels) / len(labels)
    assert share == pytest.approx([0.7, 0.1, 0.2], abs=0.01)


@given(pairs, st.floats(0, 0.15), st.floats(0, 0.15), st.integers(2, 5))
def test_windows_slide_to_the_end_and_never_look_ahead(
    rows: list[tuple[int, int]], valid: float, test: float, parts: int
) -> None:
    frame = log(rows, [item for _, item in rows])  # many ties
    tested: list[tuple[int, ...]] = []
    sizes = []
    for rule in SplitRule("time-windows", valid, test, parts=parts).each():
        found, notes = split_frame(frame, rule, 0, "log")
        times = [found[name]["timestamp"] for name in ("train", "valid", "test")]
        for earlier, later in ((0, 1), (1, 2), (0, 2)):
            assert not len(times[earlier]) or not len(times[later]) or times[earlier].max() < times[later].min()
        tested += found["test"].rows()
        sizes.append(found["train"].height)
        left = frame.height - sum(part.height for part in found.values())
        assert any("after the window" in note for note in notes) == bool(left)
    assert len(tested) == len(set(tested))  # no pair is tested twice
    assert sizes == sorted(sizes)


def test_windows_without_ties() -> None:
    labels, tied = time_window(np.arange(100), 0.1, 0.1, 5, 2)
    assert np.bincount(labels + 1).tolist() == [30, 50, 10, 10]
    assert (labels[50:60] == 1).all()
    assert (labels[60:70] == 2).all()
    assert tied == 0


def test_every_user_is_in_the_test_of_one_fold() -> None:
    frame = log([(user, item) for user in range(200) for item in range(10)])
    tested = [
        set(split_frame(frame, rule, 3, "log")[0]["test"]["user_id"])
        for rule in SplitRule("user-folds", parts=4).each()
    ]
    assert sum(map(len, tested)) == len(set.union(*tested)) == 200
    assert all(30 < len(users) < 70 for users in tested)


@pytest.mark.parametrize(("kind", "column"), [("cold-users", "user_id"), ("cold-items", "item_id")])
@pytest.mark.parametrize("support", [0, 2])
def test_cold_ones_keep_few_training_pairs_the_earliest(kind: str, column: str, support: int) -> None:
    frame = log([(user, item) for user in range(40) for item in range(30)])
    parts, notes = split_frame(frame, SplitRule(kind, 0.2, 0.3, support=support), 0, "log")
    cold = {name: set(parts[name][column]) for name in ("valid", "test")}
    assert not cold["valid"] & cold["test"]
    assert cold["valid"]
    assert cold["test"]
    kept = parts["train"].filter(pl.col(column).is_in(cold["test"] | cold["valid"]))
    if support:
        assert (kept.group_by(column).len()["len"] == support).all()
        last = kept.group_by(column).agg(pl.col("timestamp").max())
        later = parts["test"].join(last, on=column, suffix="_kept")
        assert (later["timestamp"] > later["timestamp_kept"]).all()
    else:
        assert not len(kept)
    assert f"keep at most {support} pairs in training" in notes[0]


def test_draws_by_id_do_not_depend_on_other_ids() -> None:
    few, many = pl.Series(["b", "d"]), pl.Series(["a", "b", "c", "d"])
    assert drawn_by_id(few, 5).tolist() == drawn_by_id(many, 5)[:, [1, 3]].tolist()
    assert drawn_by_id(few, 5).tolist() != drawn_by_id(few, 6).tolist()
    drawn = drawn_by_id(pl.Series(range(2000)), 0)
    assert drawn.mean(1) == pytest.approx([0.5, 0.5], abs=0.03)
    assert abs(np.corrcoef(drawn)[0, 1]) < 0.1


def test_numbers_are_digests_of_the_seed_and_both_ids() -> None:
    """As SQL computes them: ('0x' || left(md5(seed || chr(0) || user_id || chr(0) || item_id), 16))::UBIGINT."""
    users, items = pl.Series([7, -1, 2**40]), pl.Series(["a", "é", ""])
    wanted = [
        int(hashlib.md5(text.encode()).hexdigest()[:16], 16)
        for text in ("3\x007\0a", "3\0-1\0é", "3\x001099511627776\0")
    ]
    assert pair_numbers(users, items, 3).tolist() == wanted
    digits = hashlib.md5(b"3\0a").hexdigest()
    assert drawn_by_id(items[:1], 3)[:, 0] == pytest.approx(
        [int(digits[:16], 16) / 2**64, int(digits[16:], 16) / 2**64]
    )


texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=3)
rows_of_a_log = st.lists(
    st.tuples(st.integers(0, 6) | texts, st.integers(0, 9), st.integers(1, 5), st.integers(0, 5)),
    min_size=1,
    max_size=60,
)


@given(
    rows_of_a_log, rules | windows, st.integers(0, 5), st.booleans(), st.booleans(), st.randoms(use_true_random=False)
)
def test_the_order_of_rows_changes_nothing(
    rows: list[tuple[int | str, int, int, int]],
    rule: SplitRule,
    seed: int,
    timed: bool,
    keep_duplicates: bool,
    random: Random,
) -> None:
    """Repeated pairs, tied times and all: rows in another order gave other splits and kept other ratings."""
    shuffled = random.sample(rows, len(rows))
    columns = {"user_id": pl.String, "item_id": pl.Int64, "rating": pl.Int64, "timestamp": pl.Int64}
    found = []
    for some in (rows, shuffled):
        frame = pl.DataFrame([(str(user), *rest) for user, *rest in some], schema=columns, orient="row")
        if not timed and not rule.needs_times:
            frame = frame.drop("timestamp")
        made = one_table(as_table(frame, "log"), split=rule, seed=seed, keep_duplicates=keep_duplicates)
        found.append({name: part.sort("user_id", "item_id") for name, part in made.frames.items()})
    for name in SPLITS:
        assert found[0][name].equals(found[1][name])


def test_seeds_differ() -> None:
    frame = log([(user, item) for user in range(5) for item in range(20)])
    first, second = (split_frame(frame, SplitRule(), seed, "log")[0]["test"] for seed in (0, 1))
    assert not first.equals(second)


def test_leave_last() -> None:
    user = np.array([0, 1, 0, 0, 0, 1, 2], dtype=np.int32)
    time = np.array([5, 1, 1, 9, 5, 2, 0])
    assert leave_last(user, time, 1).tolist() == [0, 0, 0, 2, 1, 2, 0]  # position breaks the tie at time 5
    assert leave_last(user, time, 2).tolist() == [1, 0, 0, 2, 2, 2, 0]


def test_counts_are_for_training_only() -> None:
    frame = log([(1, item) for item in range(10)]).with_columns(count=pl.lit(2))
    parts, _ = split_frame(frame, SplitRule(), 0, "log")
    assert [("count" in parts[name].columns) for name in ("train", "valid", "test")] == [True, False, False]


@given(pairs, st.integers(1, 4), st.integers(1, 4))
def test_drop_rare_leaves_the_core(rows: list[tuple[int, int]], min_user: int, min_item: int) -> None:
    kept = set(rows)
    while True:  # the definition
        users, items = [user for user, _ in kept], [item for _, item in kept]
        fewer = {(u, i) for u, i in kept if users.count(u) >= min_user and items.count(i) >= min_item}
        if fewer == kept:
            break
        kept = fewer
    if not kept:
        with pytest.raises(InputError, match="no pair is left"):
            drop_rare(log(rows), min_user, min_item)
        return
    frame, notes = drop_rare(log(rows), min_user, min_item)
    assert set(frame.select("user_id", "item_id").rows()) == kept
    assert bool(notes) == (len(kept) < len(rows))


def test_drop_rare_says_what() -> None:
    rows = [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 9)]
    assert drop_rare(log(rows), 2, 2)[1] == [
        "1 users with fewer than 2 interactions and 1 items with fewer than 2 interactions were dropped, 2 pairs in all"
    ]


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"kind": "by-mood"}, "there is no split 'by-mood'; choose one of random, random-global, temporal, leave-last"),
        ({"valid": 0.5, "test": 0.5}, "make their sum less than 1"),
        ({"valid": -0.1}, "at least 0"),
        ({"test": float("nan")}, "at least 0"),
        ({"last_k": 0}, "last_k must be at least 1, got 0"),
    ],
)
def test_wrong_rules(setting: dict[str, object], words: str) -> None:
    with pytest.raises(InputError) as error:
        SplitRule(**setting)  # type: ignore[arg-type]
    assert words in str(error.value)


@pytest.mark.parametrize("kind", ["temporal", "leave-last"])
def test_times_are_needed(kind: str) -> None:
    with pytest.raises(InputError, match=r"needs times, and clicks.csv has none; name the --timestamp-column"):
        split_frame(log([(1, 1)]).drop("timestamp"), SplitRule(kind), 0, "clicks.csv")
