"""Comparisons of lists: numbers against the evaluator's, verdicts, exposure and examples by hand."""

import csv
import io
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaa import Dataset, InputError
from dpaa.comparison import Comparison, Entry, TrainingBudget, compare_entries
from dpaa.comparison._compare import per_user_values, shared_items
from dpaa.comparison._result import SHOWN
from dpaa.evaluation.evaluator import Evaluator

QUICK: dict[str, Any] = {"resamples": 300}


@pytest.fixture(scope="module")
def evaluator(small_world: Dataset) -> Evaluator:
    return Evaluator(small_world, 10)


@pytest.fixture(scope="module")
def found(evaluator: Evaluator) -> Comparison:
    plain, good = (good_lists(evaluator, share, 0) for share in (0.1, 0.6))
    entries = [
        entry(evaluator, "plain", plain),
        entry(evaluator, "few", np.concatenate([good[:4], plain[4:]])),  # 4 users: p is at least 2/2⁴
        entry(evaluator, "good", *(good_lists(evaluator, 0.6, seed) for seed in (2, 3, 4))),
    ]
    return compare_entries(evaluator, entries, **QUICK)


def good_lists(evaluator: Evaluator, share: float, seed: int) -> np.ndarray:
    """Lists of distinct items of which about a share of the relevant ones is found."""
    rng = np.random.default_rng(seed)
    n_items, k = evaluator.dataset.n_items, evaluator.protocol.k[-1]
    user, item = np.divmod(evaluator.truth.relevant, n_items)
    scores = rng.random((evaluator.dataset.n_users, n_items))
    found = rng.random(len(user)) < share
    scores[user[found], item[found]] += 1
    return np.argsort(-scores[evaluator.users], axis=1)[:, :k]


def entry(evaluator: Evaluator, name: str, *lists: np.ndarray, kind: str = "run") -> Entry:
    sources = tuple(f"runs/{name}-{number}" for number in range(len(lists)))
    seeds = tuple(range(len(lists))) if kind == "run" else ()
    return Entry(name, kind, sources, tuple(evaluator.evaluate_lists(one) for one in lists), seeds)


def test_verdicts(found: Comparison) -> None:
    verdicts = {(delta.entry, delta.metric): delta.verdict for delta in found.deltas}
    assert verdicts["good", "recall@10"] == "better"
    assert verdicts["few", "recall@10"] == "not shown"
    assert verdicts["good", "coverage@10"] == "not tested"
    for delta in found.deltas:
        if delta.p is not None and delta.p_holm is not None and delta.interval:
            assert delta.p <= delta.p_holm
            assert delta.interval[0] <= delta.delta <= delta.interval[1]
    assert found.family == "Holm's correction for 12 tests"


def test_no_harm(evaluator: Evaluator, found: Comparison) -> None:
    assert {harm["entry"]: harm["verdict"] for harm in found.no_harm}["good"] == "shown"
    good, plain = (entry(evaluator, str(share), good_lists(evaluator, share, 7)) for share in (0.6, 0.1))
    assert compare_entries(evaluator, [good, plain], **QUICK).no_harm[0]["verdict"] == "harm"
    same = compare_entries(evaluator, [plain, replace(plain, name="again")], **QUICK).no_harm[0]
    assert same["verdict"] == "shown"
    assert same["metric"] == "recall@10/popular"
    tolerant = compare_entries(evaluator, [good, plain], margin=0.99, **QUICK).no_harm[0]
    assert (tolerant["margin"], tolerant["verdict"]) == (0.99, "shown")
    with pytest.raises(InputError, match="margin must be between 0 and 1, got 5"):
        compare_entries(evaluator, [good, plain], margin=5, **QUICK)


def test_exposure_by_hand(evaluator: Evaluator) -> None:
    """Everybody gets items 0 … 9; then one user gets item 10 in place of 3."""
    lists = np.tile(np.arange(10), (len(evaluator.users), 1))
    other = lists.copy()
    other[0, 3] = 10
    pair = [entry(evaluator, "a", lists), entry(evaluator, "b", other)]
    (exposure,) = compare_entries(evaluator, pair, **QUICK).exposure
    ids = evaluator.dataset.item_ids
    assert [(one["item_id"], one["baseline"], one["value"]) for one in exposure["gaining"]] == [(ids[10], 0, 1)]
    (lost,) = exposure["losing"]
    assert (lost["item_id"], lost["training_count"]) == (ids[3], evaluator.counts[3])
    assert lost["group"] == ("popular" if evaluator.truth.popular[3] else "niche")


def test_seeds_with_nearly_the_same_lists_are_noted(evaluator: Evaluator) -> None:
    """9.5 of 10 items and more; of methods without epochs it is no news."""
    lists = good_lists(evaluator, 0.3, 1)
    near, far = lists.copy(), lists.copy()
    near[:, 0] = np.where(np.arange(len(lists)) % 3, near[:, 0], -1)  # a third of the lists lacks one item
    far[:, :2] = -1
    plain, budget = entry(evaluator, "plain", good_lists(evaluator, 0.1, 2)), TrainingBudget(1000, 50, 1e-3, 0, 30)

    def noted(one: np.ndarray, other: np.ndarray, epochs: int | None = 1000) -> list[str]:
        pair = replace(entry(evaluator, "pair", one, other), budgets=(replace(budget, epochs=epochs),) * 2)
        notes = compare_entries(evaluator, [plain, pair], **QUICK).notes
        return [note for note in notes if "different seeds" in note]

    assert noted(lists, lists) == [
        "runs of pair with different seeds share 10.0 of 10 items: its results hardly depend on training, so their "
        "deviation over seeds is not informative"
    ]
    assert "share 9.7 of 10" in noted(lists, near)[0]
    assert noted(lists, far) == noted(lists, lists, epochs=None) == []


def test_lists_that_are_missing_or_hold_strangers(evaluator: Evaluator) -> None:
    full = good_lists(evaluator, 0.5, 0)
    holes = full.copy()
    holes[::2] = -1
    holes[1, 0] = -1
    pair = [entry(evaluator, "full", full), entry(evaluator, "holes", holes, kind="file")]
    found = compare_entries(evaluator, pair, **QUICK)
    recall = next(delta for delta in found.deltas if delta.metric == "recall@10")
    assert recall.verdict == "worse"
    assert recall.users == len(full)
    arp = next(delta for delta in found.deltas if delta.metric == "arp@10")
    assert arp.users == len(full) - len(full[::2])
    # arp is a mean over lists that are there: held against the baseline's for the same users.
    before = per_user_values(pair[0].evaluations[0], "arp@10")
    after = per_user_values(pair[1].evaluations[0], "arp@10")
    both = ~np.isnan(after)
    assert arp.baseline == pytest.approx(before[both].mean())
    assert arp.baseline != pytest.approx(before.mean(), rel=1e-6)
    assert arp.delta == pytest.approx((after - before)[both].mean())
    assert arp.interval[0] <= arp.delta <= arp.interval[1]


lists = st.integers(1, 5).flatmap(
    lambda k: st.lists(
        st.tuples(*(st.lists(st.integers(0, 6), unique=True, max_size=k) for _ in range(2))), min_size=1, max_size=6
    ).map(lambda rows: [[[*side, *([-1] * (k - len(side)))] for side in row] for row in rows])
)


@given(lists)
def test_overlap_equals_sets(rows: Any) -> None:
    one, other = (np.array([row[side] for row in rows]) for side in (0, 1))
    for place, (a, b) in enumerate(rows):
        left, right = set(a) - {-1}, set(b) - {-1}
        assert shared_items(one, other)[0][place] == len(left & right)
        expected = len(left & right) / len(left | right) if left | right else 1.0
        assert shared_items(one, other)[1][place] == pytest.approx(expected)
    assert shared_items(one, other)[0].tolist() == shared_items(other, one)[0].tolist()


def test_markdown(found: Comparison) -> None:
    lines = found.markdown().splitlines()
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    metrics = list(dict.fromkeys(delta.metric for delta in found.deltas))
    assert table[0] == ["", *metrics]
    assert [row[0].split(" (")[0] for row in table[2:]] == [entry.name for entry in found.entries]
    marks = {
        (row[0].split(" (")[0], metric): cell[-1]
        for row in table[2:]
        for metric, cell in zip(metrics, row[1:], strict=True)
    }
    for delta in found.deltas:
        assert (marks[delta.entry, delta.metric] == SHOWN.get(delta.verdict)) == (delta.verdict in SHOWN)
    good = next(row for row in table if row[0].startswith("good"))
    assert good[0] == "good (3 runs)"
    assert re.fullmatch(r"\*\*0\.\d{4}\*\* ± 0\.\d{4} \+", good[1 + metrics.index("recall@10")])
    assert found.family in lines[-1]


def test_latex(found: Comparison) -> None:
    text = found.latex()
    assert r"\textbf{" in text
    assert r"$\pm$" in text
    assert "$^{+}$" in text
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert len(rows) == 1 + len(found.entries)
    assert {row.count("&") for row in rows} == {len({delta.metric for delta in found.deltas})}
    assert text.count("{") == text.count("}")


def test_csv_has_every_number(found: Comparison) -> None:
    rows = list(csv.DictReader(io.StringIO(found.csv())))
    metrics = {delta.metric for delta in found.deltas}
    assert len(rows) == len(metrics) * (len(found.entries) - 1)
    by = {(row["entry"], row["metric"]): row for row in rows}
    for delta in found.deltas:
        row = by[delta.entry, delta.metric]
        assert float(row["delta"]) == delta.delta
        assert row["verdict"] == delta.verdict
        assert row["p_holm"] == ("" if delta.p_holm is None else str(delta.p_holm))
