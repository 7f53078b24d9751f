"""The whole suite against loops and sets; arrays, files and the evaluator agree."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaa.evaluation import GroundTruth, Measured, measure_all
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


def of_arrays(
    lists: Any, relevant: Any, counts: Any, histories: Any, candidates: Any, cuts: Any, **groups: Any
) -> Measured:
    n, items = len(lists), len(counts)
    history = keys_and_pairs(histories, items)[1]
    relevant_keys = keys_and_pairs(relevant, items)[0]
    allowed = None if candidates is None else np.array(candidates)
    truth = GroundTruth(np.arange(n), n, np.array(counts), relevant_keys, history, history, allowed, **groups)
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


@given(cases())
def test_exposure_of_groups_equals_sets_and_loops(case: dict[str, Any]) -> None:
    n_items = len(case["counts"])
    groups = {"part=odd": set(range(1, n_items, 2)), "part=first": {0}}
    masks = {name: np.isin(np.arange(n_items), list(items)) for name, items in groups.items()}
    names = ("lists", "relevant", "counts", "histories", "candidates")
    found = of_arrays(*(case[name] for name in names), (case["k"],), groups=masks).metrics
    expected = slow_suite.exposures(case["lists"], case["relevant"], case["candidates"], groups, case["k"])
    assert {name for name in found if name.startswith("exposure")} == set(expected)
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, nan_ok=True, abs=1e-9), name
