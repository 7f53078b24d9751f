"""Splits: every pair in one of them, nothing lost, the promised sizes, the pairs of earlier versions."""

import hashlib
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dpaa import Dataset, InputError
from dpaa.data import SPLIT_KINDS, SplitRule, as_table, open_log
from dpaa.data.ids import SPLITS
from dpaa.data.prepare import one_table

pairs = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 20)), min_size=1, max_size=60, unique_by=lambda pair: pair)
shares = st.floats(0, 0.15)
rules = st.builds(SplitRule, st.sampled_from(SPLIT_KINDS), shares, shares, st.integers(1, 3), support=st.integers(0, 3))
few = settings(max_examples=25, deadline=None)


def log(rows: list[tuple[int, int]], times: list[int] | None = None) -> pl.DataFrame:
    frame = pl.DataFrame(rows, schema=["user_id", "item_id"], orient="row")
    return frame.with_columns(timestamp=pl.Series(times if times is not None else range(len(rows))))


def split(frame: pl.DataFrame, rule: SplitRule, seed: int = 0, **how: object) -> dict[str, pl.DataFrame]:
    return one_table(as_table(frame, "log"), rule, seed=seed, **how).frames  # type: ignore[return-value]


def items(parts: dict[str, pl.DataFrame]) -> list[list[int]]:
    return [parts[name]["item_id"].to_list() for name in SPLITS]


@given(pairs, rules, st.integers(0, 5), st.booleans(), st.randoms(use_true_random=False))
@few
def test_disjoint_complete_and_the_same_for_rows_in_any_order(
    rows: list[tuple[int, int]], rule: SplitRule, seed: int, tied: bool, random: Random
) -> None:
    frame = log(rows, [index // 4 if tied else index for index in range(len(rows))])
    parts = split(frame, rule, seed)
    shuffled = split(frame[random.sample(range(frame.height), frame.height)], rule, seed)
    assert all(parts[name].equals(shuffled[name]) for name in SPLITS)
    labelled = sorted(row for part in parts.values() for row in part.rows())
    assert labelled == sorted(frame.rows()) if rule.kind != "time-windows" else set(labelled) <= set(frame.rows())
    if rule.kind in ("random", "leave-last"):
        assert set(parts["train"]["user_id"]) == set(frame["user_id"])
    if rule.needs_times and rule.kind != "leave-last":
        ends = [(part["timestamp"].min(), part["timestamp"].max()) for part in parts.values() if part.height]
        assert all(before[1] < after[0] for before, after in pairwise(ends))  # type: ignore[operator]


def test_random_labels_are_digests_of_the_seed_and_the_ids() -> None:
    """A slow twin in Python: MD5 of the seed and the ids, as docs/how-to/logs.md says."""
    rng = np.random.default_rng(1)
    frame = pl.DataFrame({"user_id": rng.integers(0, 30, 900), "item_id": rng.integers(0, 90, 900)}).unique()
    test = set()
    for user in frame["user_id"].unique():
        own = frame.filter(pl.col("user_id") == user)["item_id"].to_list()
        own.sort(key=lambda item: hashlib.md5(f"3\0{user}\0{item}".encode()).hexdigest()[:16])
        fraction = (int(hashlib.md5(f"3\0{user}".encode()).hexdigest()[:16], 16) >> 11) / 2**53
        test |= {(user, item) for item in own[: min(int(len(own) * 0.2 + fraction), len(own) - 1)]}
    assert set(split(frame, SplitRule("random"), 3)["test"].rows()) == test
    ordered = sorted(frame.rows(), key=lambda pair: hashlib.md5(f"3\0{pair[0]}\0{pair[1]}".encode()).hexdigest())
    wanted = set(ordered[: round(frame.height * 0.2)])
    assert set(split(frame, SplitRule("random-global"), 3)["test"].rows()) == wanted


GOLDEN = {
    "random": ("f860d86792f2", "a67a26096102"),
    "random-global": ("5f84dddb267c", "adc765e723cb"),
    "temporal": ("7635092175c2", "6e77c57de4fe"),
    "leave-last": ("c22910a472b5", "84267b03dcdd"),
    "user-folds": ("5330c88984c5", "e64edded8c67"),
    "cold-users": ("91580c39d445", "cb94e3eb320f"),
    "cold-items": ("7f5be47da958", "b884f69657a3"),
    "time-windows": ("505425823997", "7b8a713f3f77"),
}
"""Fingerprints that the version before this one gave, with integer and with text ids of users."""


@pytest.mark.parametrize("kind", SPLIT_KINDS)
def test_pairs_of_the_last_version(kind: str, tmp_path: Path) -> None:
    rng, n = np.random.default_rng(0), 3000
    frame = pl.DataFrame(
        {
            "user_id": (rng.random(n) ** 2 * 170).astype(int),
            "item_id": (rng.random(n) ** 2 * 60).astype(int),
            "rating": rng.integers(1, 6, n),
            "timestamp": rng.permutation(n) // 3,
        }
    )
    how = {"min_user_interactions": 3, "min_item_interactions": 5, "keep_duplicates": kind == "random", "seed": 3}
    for wanted, made in zip(GOLDEN[kind], (frame, frame.with_columns(pl.format("u{}", "user_id").alias("user_id")))):  # noqa: B905
        made.write_csv(tmp_path / "log.csv", separator=";")
        made.write_ndjson(tmp_path / "log.jsonl")
        for file in ("log.csv", "log.jsonl"):
            prepared = one_table(
                open_log(tmp_path / file), SplitRule(kind, parts=3, part=2), positive="rating>2", **how
            )
            assert Dataset.of(**prepared._asdict(), name="a").fingerprint.startswith(wanted)


def test_sizes_by_hand() -> None:
    frame = log([(0, item) for item in range(10)])
    assert items(split(frame, SplitRule("temporal", 0.2, 0.3))) == [[0, 1, 2, 3, 4], [5, 6], [7, 8, 9]]
    assert items(split(frame, SplitRule("leave-last", last_k=2))) == [[0, 1, 2, 3, 4, 5], [6, 7], [8, 9]]
    window = SplitRule("time-windows", 0.1, 0.2, parts=3, part=2)
    assert items(split(frame, window)) == [[0, 1, 2, 3, 4], [5], [6, 7]]
    assert items(split(log([(0, 5)]), SplitRule("leave-last"))) == [[5], [], []]
    tied = log([(0, n) for n in range(4)], [0, 1, 1, 1])  # pairs at the time of a cut go to the earlier split
    assert items(split(tied, SplitRule("temporal", 0, 0.5))) == [[0, 1, 2, 3], [], []]


def test_every_user_is_in_the_test_of_one_fold() -> None:
    frame = log([(user, item) for user in range(40) for item in range(10)])
    parts = [split(frame, rule) for rule in SplitRule("user-folds", 0.1, 0.2, parts=4).each()]
    tested = [set(part["test"]["user_id"]) for part in parts]
    assert set().union(*tested) == set(range(40))
    assert sum(map(len, tested)) == 40
    for test, part in zip(tested, parts, strict=True):
        assert test.isdisjoint(part["valid"]["user_id"])


@pytest.mark.parametrize(("kind", "column"), [("cold-users", "user_id"), ("cold-items", "item_id")])
def test_cold_ones_keep_few_training_pairs_the_earliest(kind: str, column: str) -> None:
    frame = log([(user, item) for user in range(30) for item in range(30)])
    parts = split(frame, SplitRule(kind, 0.2, 0.3, support=3))
    held_out = pl.concat([parts["valid"], parts["test"]])
    cold = parts["train"].filter(pl.col(column).is_in(held_out[column].unique().implode()))
    assert set(cold[column].value_counts()["count"]) == {3}
    first, later = (part.group_by(column).agg(pl.col("timestamp")) for part in (cold, held_out))
    for _, mine, theirs in first.join(later, on=column).iter_rows():
        assert max(mine) < min(theirs)


@given(pairs, st.integers(1, 4), st.integers(1, 4))
@few
def test_rare_users_and_items_leave_the_core(rows: list[tuple[int, int]], min_user: int, min_item: int) -> None:
    core = set(rows)
    while True:
        kept = {
            (user, item)
            for user, item in core
            if sum(one == user for one, _ in core) >= min_user and sum(one == item for _, one in core) >= min_item
        }
        if kept == core:
            break
        core = kept
    how = {"min_user_interactions": min_user, "min_item_interactions": min_item}
    if not core:
        with pytest.raises(InputError, match="no pair is left with"):
            one_table(as_table(log(rows), "log"), **how)
        return
    assume(core)
    prepared = one_table(as_table(log(rows), "log"), **how)
    assert set(prepared.frames["train"].select("user_id", "item_id").rows()) == core
    assert any("were dropped" in note for note in prepared.notes) == (len(core) < len(rows))
