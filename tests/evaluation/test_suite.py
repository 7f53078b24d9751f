"""The whole suite against loops and sets; arrays, files and the evaluator agree."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaa.data.dataset import Dataset
from dpaa.errors import InputError
from dpaa.evaluation import measure, read_recommendations
from dpaa.evaluation.evaluator import Evaluator
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


@settings(max_examples=300)
@given(cases())
def test_the_suite_equals_sets_and_loops(case: dict[str, Any]) -> None:
    expected = slow_suite.suite(**case)
    found = measure(
        case["lists"],
        case["relevant"],
        case["counts"],
        k=case["k"],
        history=case["histories"],
        candidates=case["candidates"],
    )
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
@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
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
        table.write_csv(file, separator="," if ending == "csv" else "\t")
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

    of_arrays = measure(
        np.array(rows),
        sets("test"),
        evaluator.counts,
        k=(3, 7),
        history=sets("train"),
        candidates=data.candidates,
    )
    # Tastes are cut over all users with a history, of whom the arrays hold those with a test pair.
    for name, value in of_arrays.metrics.items():
        if "tastes" not in name or len(evaluator.users) == data.n_users:
            assert of_file.metrics[name] == pytest.approx(value, nan_ok=True), name
    assert of_file.exposure["7"] == pytest.approx(of_arrays.exposure["7"])


def test_per_user_table_holds_what_the_averages_are_made_of() -> None:
    data, rng = world(5)
    evaluator = Evaluator(data, (2, 5))
    lists = np.array([rng.permutation(data.n_items)[:5] for _ in evaluator.users])
    found = evaluator.evaluate_lists(lists)
    table = found.per_user
    for name in ("recall@5", "map@5/niche", "arp@5", "popularity_lift@5", "upd@5"):
        assert table[name].mean() == pytest.approx(found.metrics[name])
    for taste in ("niche", "diverse", "blockbuster"):
        mean = table.filter(pl.col("taste") == taste)["upd@5"].mean()
        assert mean == pytest.approx(found.metrics[f"upd@5/{taste}-tastes"])
    assert "recall@2" not in table.columns
    assert sum(found.exposure["history"]) == pytest.approx(1.0)
    assert sum(found.exposure["2"]) == pytest.approx(1.0)


def test_pairs_may_come_as_two_arrays() -> None:
    lists, counts = [[0, 1], [2, -1]], [3, 2, 1]
    by_row = measure(lists, [{1}, {0, 2}], counts, history=[{2}, set()])
    rows, items = np.array([1, 0, 1, 1]), np.array([2, 1, 0, 0])
    by_pair = measure(lists, (rows, items), counts, history=(np.array([0]), np.array([2])))
    assert by_pair.metrics == pytest.approx(by_row.metrics, nan_ok=True)
    assert by_row.metrics["recall@2"] == pytest.approx((1 + 1 / 2) / 2)
    assert by_row.per_row["taste"].tolist() == ["diverse", None]


def test_without_a_history_what_needs_one_is_left_out() -> None:
    found = measure([[0, 1]], [{1}], [3, 2], k=5)
    assert found.metrics["recall@5"] == 1.0
    assert found.metrics["precision@5"] == pytest.approx(1 / 5)
    assert not {"upd@5", "popularity_lift@5", "pop_rsp@5", "recall@5/niche-tastes"} & set(found.metrics)
    assert math.isnan(found.metrics["recall@5/niche"])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"lists": [0, 1]}, "lists must be a table of item indices"),
        ({"lists": [[0, 1], [2]]}, "lists must be a table of item indices"),
        ({"lists": [[0.5, 1.0]]}, "lists must be a table of item indices"),
        ({"lists": [[0, 3]]}, "outside -1 to 2; counts has 3 items"),
        ({"lists": [[1, -2]]}, "outside -1 to 2"),
        ({"lists": [[2, 2]]}, "list 0 holds item 2 twice"),
        ({"relevant": []}, "relevant has 0 collections for 1 lists"),
        ({"relevant": [{7}]}, "relevant must hold whole numbers from 0 to 2"),
        ({"relevant": (np.array([0, 0]), np.array([1]))}, "relevant has 2 rows and 1 items"),
        ({"relevant": (np.array([3]), np.array([1]))}, "relevant must hold whole numbers from 0 to 0"),
        ({"history": [{"a"}]}, "history must hold whole numbers"),
        ({"counts": [1, -1, 0]}, "counts must be one number from 0 for each item"),
        ({"counts": [1, math.nan, 0]}, "counts must be one number from 0 for each item"),
        ({"counts": []}, "counts must be one number"),
        ({"candidates": [5]}, "candidates must hold whole numbers"),
        ({"k": 0}, "k must be at least 1"),
    ],
)
def test_wrong_arrays_are_refused(change: dict[str, Any], says: str) -> None:
    given: dict[str, Any] = {"lists": [[0, 1]], "relevant": [{0}], "counts": [1, 2, 3]}
    with pytest.raises(InputError, match=says):
        measure(**(given | change))
