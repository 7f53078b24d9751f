"""The whole suite against loops and sets; arrays, files and the evaluator agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaa.data.dataset import Dataset
from dpaa.evaluation import Evaluator, GroundTruth, Measured, measure_all, read_recommendations
from tests.evaluation import slow_suite


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    n_items, n_rows, k = draw(st.integers(2, 10)), draw(st.integers(1, 8)), draw(st.integers(1, 5))
    items = st.integers(0, n_items - 1)
    lists = []
    for _ in range(n_rows):
        length = draw(st.integers(0, min(k, n_items)))
        row = draw(st.permutations(range(n_items)))[:length]
        if row and draw(st.booleans()):
            row[draw(st.integers(0, length - 1))] = -1  # an item the dataset does not know keeps its place
        lists.append(row + [-1] * (k - length))
    sets = st.lists(st.sets(items, max_size=4), min_size=n_rows, max_size=n_rows)
    histories = draw(sets)
    counts = np.zeros(n_items, dtype=int)
    for history in histories:
        counts[list(history)] += 1
    counts += np.array(draw(st.lists(st.integers(0, 3), min_size=n_items, max_size=n_items)))
    return {
        "lists": lists,
        "relevant": draw(sets),
        "counts": counts.tolist(),
        "histories": histories,
        "candidates": sorted(draw(st.sets(items, min_size=1))),
        "k": draw(st.integers(1, k)),
    }


def keys_and_pairs(sets: list[set[int]], n_items: int) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    pairs = np.array([(row, item) for row, items in enumerate(sets) for item in sorted(items)], dtype=int).reshape(
        -1, 2
    )
    return pairs[:, 0] * n_items + pairs[:, 1], (pairs[:, 0], pairs[:, 1])


def of_arrays(lists: Any, relevant: Any, counts: Any, histories: Any, candidates: Any, cuts: Any) -> Measured:
    n, items = len(lists), len(counts)
    history = keys_and_pairs(histories, items)[1]
    relevant_keys = keys_and_pairs(relevant, items)[0]
    allowed = None if candidates is None else np.array(candidates)
    truth = GroundTruth(np.arange(n), n, np.array(counts), relevant_keys, history, history, allowed)
    return measure_all(truth, np.array(lists), cuts)


@settings(max_examples=200)
@given(cases())
def test_the_suite_equals_sets_and_loops(case: dict[str, Any]) -> None:
    expected = slow_suite.suite(**case)
    names = ("lists", "relevant", "counts", "histories", "candidates")
    found = of_arrays(*(case[name] for name in names), (case["k"],))
    assert set(found.metrics) == set(expected)
    for name, value in expected.items():
        assert found.metrics[name] == pytest.approx(value, nan_ok=True, abs=1e-7), name


def world(seed: int, candidates: list[int] | None = None) -> tuple[Dataset, np.random.Generator]:
    rng = np.random.default_rng(seed)
    chance = 1.0 / np.arange(1, 31)
    pairs = [(user, item) for user in range(40) for item in rng.choice(30, 9, replace=False, p=chance / chance.sum())]
    parts = rng.permutation(len(pairs)) % 3
    frames: Any = {
        name: pl.DataFrame(
            [(f"u{u:02}", 100 + int(i)) for (u, i), own in zip(pairs, parts, strict=True) if own == part],
            schema=["user_id", "item_id"],
            orient="row",
        )
        for part, name in enumerate(("train", "valid", "test"))
    }
    listed = None if candidates is None else pl.Series("item_id", candidates)
    return Dataset.of(frames, name="made", about={}, candidates=listed), rng


@pytest.mark.parametrize("candidates", [None, [100, 101, 105, 117, 118, 119, 120, 129]])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_file_evaluator_and_arrays_agree(tmp_path: Path, ending: str, candidates: list[int] | None) -> None:
    data, rng = world(3, candidates)
    evaluator = Evaluator(data, (3, 7))
    rows, frames = [], []
    for user in evaluator.users:
        items = rng.permutation(data.n_items)[:7]
        rows.append(items)
        ranks, ids = np.arange(1, 8), data.item_ids.gather(items)
        frames.append(pl.DataFrame({"user_id": [data.user_ids[int(user)]] * 7, "item_id": ids, "rank": ranks}))
    table = pl.concat(frames).sample(fraction=1.0, shuffle=True, seed=1)
    file = tmp_path / f"recs.{ending}"
    if ending == "parquet":
        table.write_parquet(file)
    else:
        table.write_csv(file)
    recs = read_recommendations(file, data.user_ids, data.item_ids, 7)
    np.testing.assert_array_equal(recs.users, evaluator.users)
    np.testing.assert_array_equal(recs.items, np.array(rows))
    of_file = evaluator.evaluate_recommendations(recs)
    assert of_file.protocol.lists == "given"

    place = {user: row for row, user in enumerate(evaluator.users.tolist())}

    def sets(split: Any) -> list[set[int]]:
        found: list[set[int]] = [set() for _ in place]
        pairs = data.split(split)
        for user, item in zip(pairs.user.tolist(), pairs.item.tolist(), strict=True):
            if user in place and (split == "train" or data.candidates is None or item in data.candidates):
                found[place[user]].add(item)
        return found

    expected = of_arrays(rows, sets("test"), evaluator.counts, sets("train"), data.candidates, (3, 7))
    # Tastes are cut over all users with a history, of whom the arrays hold those with a test pair.
    for name, value in expected.metrics.items():
        if "tastes" not in name or len(evaluator.users) == data.n_users:
            assert of_file.metrics[name] == pytest.approx(value, nan_ok=True), name
    assert of_file.exposure["7"] == pytest.approx(expected.exposure["7"])
