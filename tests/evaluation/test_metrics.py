"""Accuracy: cases worked by hand, laws, and scikit-learn's NDCG."""

import contextlib
import os
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score

from dpaa.cli.evaluate import _print_evaluation
from dpaa.comparison import Entry, compare_entries
from dpaa.data.sources.world import simulate
from dpaa.evaluation.context import Context, GroundTruth
from dpaa.evaluation.evaluator import Evaluator
from dpaa.evaluation.metrics import METRICS, Metric, explain, of_kind
from dpaa.report._runs import best_of

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"

Formula = Callable[[np.ndarray, np.ndarray], np.ndarray]


def of_hits(name: str) -> Formula:
    """The formula of the table, of hits and numbers of relevant items alone."""
    nothing = GroundTruth(np.zeros(0), 0, np.zeros(0), np.zeros(0))
    return lambda hits, relevant: METRICS[name].formula(
        Context(nothing, np.zeros(hits.shape), hits, relevant, slice(None))
    )


ACCURACY = {one.name: of_hits(one.name) for one in of_kind("accuracy")}
recall, precision, ndcg, mrr, average_precision, hit = ACCURACY.values()


def test_hits_at_first_and_third_place_of_four_relevant() -> None:
    hits, relevant = np.array([[True, False, True]]), np.array([4])
    assert recall(hits, relevant).item() == 2 / 4
    assert precision(hits, relevant).item() == pytest.approx(2 / 3)
    assert hit(hits, relevant).item() == 1.0
    assert mrr(hits, relevant).item() == 1.0
    # Gain 1/log2(2) + 1/log2(4) = 1.5; at best 1 + 0.6309 + 0.5 = 2.1309.
    assert ndcg(hits, relevant).item() == pytest.approx(1.5 / 2.1309, abs=1e-4)
    # Precision 1/1 at the first hit, 2/3 at the second; at best three hits.
    assert average_precision(hits, relevant).item() == pytest.approx((1 + 2 / 3) / 3)


@given(st.integers(2, 30), st.integers(1, 12), st.integers(0, 10_000))
def test_ndcg_is_scikit_learns(n_items: int, k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.permuted(np.tile(np.arange(n_items), (4, 1)), axis=1)
    wanted = rng.random((4, n_items)) < 0.3
    wanted[:, 0] = True
    order = np.argsort(-scores, axis=1)[:, :k]
    ours = ndcg(np.take_along_axis(wanted, order, axis=1), wanted.sum(axis=1))
    # The list may be longer than there are items: the ideal is then shorter than k, here as there.
    assert ours.mean() == pytest.approx(ndcg_score(wanted.astype(int), scores, k=k))


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Metric:
    """A metric that is nowhere but in the table."""

    def first_count(at: Context) -> np.ndarray:
        """Count of the first item.

        Source: here
        """
        return at.truth.counts[at.lists[:, 0]].astype(float)

    added = Metric("first_count", first_count, "popularity", "low", "how popular the first item is")
    monkeypatch.setitem(METRICS, added.name, added)
    return added


def test_a_metric_is_one_entry(toy: Metric) -> None:
    """What is in the table is measured, compared, explained, printed and documented."""
    data = simulate(users=60, items=40, seed=1)
    evaluator = Evaluator(data, (3, 5))
    order = np.argsort(-evaluator.counts, kind="stable")
    head, tail = (np.tile(items, (len(evaluator.users), 1)) for items in (order[:5], order[-5:]))
    found = evaluator.evaluate_lists(head)
    largest = evaluator.counts[order[0]]
    assert found.metrics["first_count@3"] == found.metrics["first_count@5"] == largest
    assert found.metrics["first_count@5/niche-tastes"] == largest
    assert found.per_user["first_count@5"].to_list() == [largest] * len(evaluator.users)
    entries = [
        Entry(name, "run", (name,), (evaluator.evaluate_lists(lists),)) for name, lists in (("a", head), ("b", tail))
    ]
    rows = compare_entries(evaluator, entries, metrics=["first_count"], resamples=200).deltas
    assert [(row.metric, row.verdict) for row in rows] == [("first_count@5", "better")]
    words = explain("first_count@5/niche-tastes")
    assert words.words == "how popular the first item is; for users who like niche items"
    assert best_of("first_count@5", {"a": 3.0, "b": 2.0}) == {"b"}
    shown = StringIO()
    with contextlib.redirect_stdout(shown):
        _print_evaluation("toy", found)
    assert "how popular the first item is; lower is better" in " ".join(shown.getvalue().split())
    pages = pytest.importorskip("scripts.metrics_page", reason="scripts are not part of this copy")
    row = "| `first_count@k` | Count of the first item | lower | 0 … 1 | | how popular the first item is | here |"
    assert row in pages.page(PAGE.read_text(encoding="utf-8")).splitlines()


def test_docs_are_fresh() -> None:
    pages = pytest.importorskip("scripts.metrics_page", reason="scripts are not part of this copy")
    text = PAGE.read_text(encoding="utf-8")
    if os.environ.get("DPAA_WRITE_DOCS"):
        text = pages.page(text)
        PAGE.write_text(text, encoding="utf-8")
    assert pages.page(text) == text, "docs/metrics.md differs: run DPAA_WRITE_DOCS=1 pytest tests/evaluation"
    assert all(text.count(f"| `{name}@k` |") == 1 for name in METRICS)
