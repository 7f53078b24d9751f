"""Comparisons of lists: numbers against the evaluator's, verdicts, exposure and examples by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaa.comparison import Comparison, compare_entries, full_name, harm_in_words, relative_change
from dpaa.comparison._compare import jaccard, per_user_values, shared_items, telling_users
from dpaa.errors import InputError
from dpaa.evaluation.evaluator import Evaluator
from tests.comparison.tools import QUICK, entry, good_lists


def test_values_are_the_evaluators(evaluator: Evaluator, found: Comparison) -> None:
    plain = evaluator.evaluate_lists(good_lists(evaluator, 0.1, 0)).metrics
    good = [evaluator.evaluate_lists(good_lists(evaluator, 0.6, seed)).metrics for seed in (2, 3, 4)]
    for delta in found.deltas:
        assert delta.baseline == pytest.approx(plain[delta.metric])
        assert delta.delta == pytest.approx(delta.value - delta.baseline)
        if delta.entry == "good":
            assert delta.value == pytest.approx(np.mean([one[delta.metric] for one in good]))
    assert found.entries[2].deviation["recall@10"] == pytest.approx(np.std([m["recall@10"] for m in good], ddof=1))
    assert found.entries[0].deviation == {}


def test_verdicts(found: Comparison) -> None:
    verdicts = {(delta.entry, delta.metric): delta.verdict for delta in found.deltas}
    assert verdicts["good", "recall@10"] == "better"
    assert verdicts["few", "recall@10"] == "not shown"
    assert verdicts["good", "coverage@10"] == "not tested"
    for delta in found.deltas:
        if delta.p is not None and delta.p_holm is not None and delta.interval:
            assert delta.p <= delta.p_holm
            assert delta.interval[0] <= delta.delta <= delta.interval[1]
    assert found.tests == 2 * 6
    assert "12 tests: 6 metrics × 2 entries against plain" in found.family


def test_too_few_resamples_are_told(evaluator: Evaluator, found: Comparison) -> None:
    """With 6 tests, p is at least 6/(R + 1) after the correction: below 0.05 from R = 120 on."""
    entries = [entry(evaluator, name, good_lists(evaluator, share, 0)) for name, share in (("a", 0.1), ("b", 0.9))]
    for resamples, enough in ((119, False), (120, True)):
        found = compare_entries(evaluator, entries, replace(QUICK, resamples=resamples))
        assert (found.deltas[0].verdict == "better") == enough
        assert any("take at least 120" in note for note in found.notes) != enough


def test_several_runs_need_no_resamples(evaluator: Evaluator) -> None:
    """Only sign changes have a smallest p; Student's t of several runs does not."""
    entries = [
        entry(evaluator, name, *(good_lists(evaluator, share, seed) for seed in (0, 1, 2)))
        for name, share in (("a", 0.1), ("b", 0.9))
    ]
    found = compare_entries(evaluator, entries, replace(QUICK, resamples=119))
    assert not any("resamples" in note for note in found.notes)
    assert found.deltas[0].verdict == "better"
    assert found.design == "from Student's t for users crossed with runs"
    other = compare_entries(evaluator, entries, replace(QUICK, resamples=2000, seed=5))
    assert [delta.interval for delta in other.deltas] == [delta.interval for delta in found.deltas]


def test_less_is_better_where_it_is(evaluator: Evaluator) -> None:
    """Only the most popular items against only rare ones: recommending rare ones lowers arp, which is better."""
    order = np.argsort(-evaluator.counts, kind="stable")
    head, tail = (np.tile(items, (len(evaluator.users), 1)) for items in (order[:10], order[-10:]))
    pair = [entry(evaluator, "head", head), entry(evaluator, "tail", tail)]
    found = {
        delta.metric: delta for delta in compare_entries(evaluator, pair, replace(QUICK, metrics=("arp", "upd"))).deltas
    }
    assert found["arp@10"].delta < 0
    assert found["arp@10"].verdict == "better"
    lift = compare_entries(evaluator, pair, replace(QUICK, metrics=("popularity_lift",))).deltas[0]
    assert lift.verdict == "lower"


def test_no_harm(evaluator: Evaluator, found: Comparison) -> None:
    assert {harm.entry: harm.verdict for harm in found.no_harm}["good"] == "shown"
    good, plain = (entry(evaluator, str(share), good_lists(evaluator, share, 7)) for share in (0.6, 0.1))
    assert compare_entries(evaluator, [good, plain], QUICK).no_harm[0].verdict == "harm"
    same = compare_entries(evaluator, [plain, replace(plain, name="again")], QUICK).no_harm[0]
    assert same.verdict == "shown"
    assert same.allowed == pytest.approx(0.95 * same.baseline)
    assert same.metric == "recall@10/popular"


def test_the_same_lists_do_not_differ(evaluator: Evaluator) -> None:
    one = entry(evaluator, "one", good_lists(evaluator, 0.3, 0))
    found = compare_entries(evaluator, [one, replace(one, name="two")], QUICK)
    assert all(delta.delta == 0 for delta in found.deltas)
    assert all(delta.p in (None, 1.0) for delta in found.deltas)
    assert found.overlap[0].jaccard == found.overlap[0].unchanged == 1.0
    assert found.exposure[0].gaining == found.exposure[0].losing == []
    assert [example.baseline_list == example.entry_list for example in found.examples] == [True] * 4


def test_exposure_by_hand(evaluator: Evaluator) -> None:
    """Everybody gets items 0 … 9; then one user gets item 10 in place of 3."""
    lists = np.tile(np.arange(10), (len(evaluator.users), 1))
    other = lists.copy()
    other[0, 3] = 10
    exposure = compare_entries(evaluator, [entry(evaluator, "a", lists), entry(evaluator, "b", other)], QUICK).exposure[
        0
    ]
    ids = evaluator.dataset.item_ids
    assert [(one.item_id, one.baseline, one.value, one.change) for one in exposure.gaining] == [(ids[10], 0, 1, 1)]
    assert [(one.item_id, one.change) for one in exposure.losing] == [(ids[3], -1)]
    assert exposure.losing[0].training_count == evaluator.counts[3]
    assert exposure.losing[0].group == ("popular" if evaluator.popular[3] else "niche")


def test_examples_mark_hits(evaluator: Evaluator, found: Comparison) -> None:
    test = evaluator.dataset.frame("test")
    assert len(found.examples) == 2 * QUICK.examples
    for example in found.examples:
        taken = set(test.filter(pl.col("user_id") == example.user_id)["item_id"])
        assert set(example.relevant) <= taken
        for side, value in ((example.baseline_list, example.baseline), (example.entry_list, example.value)):
            assert [place.hit for place in side] == [place.item_id in set(example.relevant) for place in side]
            assert sum(place.hit for place in side) / len(example.relevant) == pytest.approx(value)
    first = next(example for example in found.examples if example.entry == "good")
    assert first.value > first.baseline


def test_lists_that_are_missing_or_hold_strangers(evaluator: Evaluator) -> None:
    full = good_lists(evaluator, 0.5, 0)
    holes = full.copy()
    holes[::2] = -1
    holes[1, 0] = -1
    pair = [entry(evaluator, "full", full), entry(evaluator, "holes", holes, kind="file")]
    found = compare_entries(evaluator, pair, replace(QUICK, examples=len(full)))
    recall = next(delta for delta in found.deltas if delta.metric == "recall@10")
    assert recall.verdict == "worse"
    assert recall.users == len(full)
    arp = next(delta for delta in found.deltas if delta.metric == "arp@10")
    assert arp.users == len(full) - len(full[::2])
    shown = {example.user_id: example for example in found.examples}
    ids = evaluator.dataset.user_ids.gather(evaluator.users)
    assert shown[ids[0]].entry_list == []
    assert shown[ids[1]].entry_list[0].item_id is None
    assert "taken as they are" in found.notes[-2]
    # arp is a mean over lists that are there: held against the baseline's for the same users.
    before = per_user_values(pair[0].evaluations[0], "arp@10")
    after = per_user_values(pair[1].evaluations[0], "arp@10")
    assert before is not None
    assert after is not None
    both = ~np.isnan(after)
    assert arp.baseline == pytest.approx(before[both].mean())
    assert arp.baseline != pytest.approx(before.mean(), rel=1e-6)
    assert arp.delta == pytest.approx((after - before)[both].mean())
    assert arp.interval is not None
    assert arp.interval[0] <= arp.delta <= arp.interval[1]
    told = f"arp@10: the difference of holes and full is that over the {arp.users} of {len(full)} users"
    assert any(note.startswith(told) for note in found.notes)


def test_baseline_by_name_or_place(evaluator: Evaluator) -> None:
    entries = [entry(evaluator, name, good_lists(evaluator, 0.3, seed)) for seed, name in enumerate("ab")]
    for name in ("b", "runs/b-0", "runs/b-0/"):
        found = compare_entries(evaluator, entries, replace(QUICK, baseline=name))
        assert found.baseline == "b"
        assert [one.name for one in found.entries] == ["b", "a"]
    with pytest.raises(InputError, match="baseline 'c' is not among the entries; choose from a, b"):
        compare_entries(evaluator, entries, replace(QUICK, baseline="c"))
    with pytest.raises(InputError, match="one entry to compare"):
        compare_entries(evaluator, entries[:1], QUICK)


def test_names_of_metrics() -> None:
    known = ["recall@20", "recall@20/niche", "arp@20"]
    assert full_name("recall", 20, known) == "recall@20"
    assert full_name("recall/niche", 20, known) == full_name("recall@20/niche", 20, known) == "recall@20/niche"
    with pytest.raises(InputError, match="no metric 'recal'; did you mean recall@20"):
        full_name("recal", 20, known)
    with pytest.raises(InputError, match="'recall@5' is not one of lists of 20"):
        full_name("recall@5", 20, known)
    with pytest.raises(InputError, match="choose from recall, arp"):
        full_name("xyzzy", 20, known)


def test_relative_changes_against_a_base_near_zero() -> None:
    """0.0001 → 0.0618 was told as "+61700 %"; the sign is always that of the difference."""
    assert np.isnan([relative_change(0.0001, 0.0617), relative_change(0.0, 0.1), relative_change(0.0, 0.0)]).all()
    assert relative_change(0.01, 0.1) == pytest.approx(10)
    assert np.isnan(relative_change(0.01, 0.1001))
    assert relative_change(-0.2, 0.1) == pytest.approx(0.5)
    assert relative_change(0.2, -0.1) == pytest.approx(-0.5)
    assert np.isnan([relative_change(float("nan"), 0.1), relative_change(0.1, float("nan"))]).all()


@pytest.mark.parametrize(
    ("verdict", "difference", "said"),
    [
        (
            "shown",
            "worse",
            "the loss on popular items is small: new loses more than chance explains, but less than 5% of",
        ),
        ("shown", "not shown", "no harm to popular items: new loses less than 5% of old's recall there, if anything"),
        ("shown", "better", "no harm to popular items: new is better there than old, by more than chance explains"),
        ("harm", "worse", "harm to popular items: new loses more than 5% of"),
        ("harm", "not shown", "harm to popular items, if this is the only question: new loses more than 5% of"),
        ("open", "not shown", "no harm to popular items is not shown: new may lose 5% of old's recall there or more"),
    ],
)
def test_no_harm_does_not_stand_beside_worse(verdict: str, difference: str, said: str) -> None:
    """One sentence for what the margin and the difference say of the same number."""
    assert harm_in_words("new", "old", 0.05, verdict, difference).startswith(said)


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
        assert shared_items(one, other)[place] == len(left & right)
        expected = len(left & right) / len(left | right) if left | right else 1.0
        assert jaccard(one, other)[place] == pytest.approx(expected)
    assert shared_items(one, other).tolist() == shared_items(other, one).tolist()


def test_telling_users_by_hand() -> None:
    """Gainers and losers in turn; equal gains by fewer shared items; then those whose lists share least."""
    gain = np.array([0.0, 0.5, 0.5, -0.2, 0.0, 1.0])
    shared = np.array([3, 9, 2, 5, 1, 8])
    assert telling_users(gain, shared, 6).tolist() == [5, 3, 2, 1, 4, 0]
    assert telling_users(gain, shared, 2).tolist() == [5, 3]
    assert telling_users(np.zeros(3), np.array([2, 0, 1]), 2).tolist() == [1, 2]
    assert telling_users(np.zeros(2), np.zeros(2), 9).tolist() == [0, 1]
