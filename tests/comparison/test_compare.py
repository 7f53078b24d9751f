"""Comparisons of lists: numbers against the evaluator's, verdicts, exposure and examples by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from dpaa.comparison.compare import compare, full_name, per_user_values
from dpaa.comparison.result import VERDICTS, Comparison
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


def test_every_metric_is_the_mean_of_its_values_per_user(evaluator: Evaluator) -> None:
    one = evaluator.evaluate_lists(good_lists(evaluator, 0.3, 0))
    tested = {name: values for name in one.metrics if (values := per_user_values(one, name)) is not None}
    assert {"recall@10", "ndcg@10/niche", "arp@10", "upd@10", "recall@10/niche-tastes"} <= tested.keys()
    assert {"coverage@10", "gini@10"} & tested.keys() == set()
    for name, values in tested.items():
        assert np.nanmean(values) == pytest.approx(one.metrics[name]), name


def test_verdicts(found: Comparison) -> None:
    verdicts = {(delta.entry, delta.metric): delta.verdict for delta in found.deltas}
    assert verdicts["good", "recall@10"] == "better"
    assert verdicts["few", "recall@10"] == "not shown"
    assert verdicts["good", "coverage@10"] == "not tested"
    assert set(verdicts.values()) <= set(VERDICTS)
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
        found = compare(evaluator, entries, replace(QUICK, resamples=resamples))
        assert (found.deltas[0].verdict == "better") == enough
        assert any("take at least 120" in note for note in found.notes) != enough


def test_several_runs_need_no_resamples(evaluator: Evaluator) -> None:
    """Only sign changes have a smallest p; Student's t of several runs does not."""
    entries = [
        entry(evaluator, name, *(good_lists(evaluator, share, seed) for seed in (0, 1, 2)))
        for name, share in (("a", 0.1), ("b", 0.9))
    ]
    found = compare(evaluator, entries, replace(QUICK, resamples=119))
    assert not any("resamples" in note for note in found.notes)
    assert found.deltas[0].verdict == "better"
    assert found.design == "from Student's t for users crossed with runs"
    other = compare(evaluator, entries, replace(QUICK, resamples=2000, seed=5))
    assert [delta.interval for delta in other.deltas] == [delta.interval for delta in found.deltas]


def test_where_intervals_come_from(evaluator: Evaluator, found: Comparison) -> None:
    assert found.design == (
        "from 300 random sign flips of the users' differences (seed 0) for few; "
        "from Student's t for users crossed with runs for good"
    )
    pair = [entry(evaluator, name, good_lists(evaluator, 0.3, seed)) for seed, name in enumerate("ab")]
    said = compare(evaluator, pair, replace(QUICK, seed=3)).design
    assert said == "from 300 random sign flips of the users' differences (seed 3)"


def test_p_and_interval_never_disagree(found: Comparison) -> None:
    for delta in found.deltas:
        if delta.p is not None and delta.interval:
            assert (delta.p < 0.05) == (delta.interval[0] > 0 or delta.interval[1] < 0)


def test_a_delta_against_a_base_near_zero(evaluator: Evaluator) -> None:
    """Popular items alone but for one place of one list, against niche ones: aplt rises from near 0 to 1."""
    order = np.argsort(-evaluator.counts, kind="stable")
    head, tail = (np.tile(items, (len(evaluator.users), 1)) for items in (order[:10], order[-10:]))
    head[0, 9] = order[-1]
    pair = [entry(evaluator, "head", head), entry(evaluator, "tail", tail)]
    delta = compare(evaluator, pair, replace(QUICK, metrics=("aplt",))).deltas[0]
    assert 0 < delta.baseline < 0.01
    assert delta.delta > 0.99
    assert np.isnan(delta.relative)


def test_what_is_better_does_no_harm(evaluator: Evaluator, found: Comparison) -> None:
    verdicts = {(delta.entry, delta.metric): delta.verdict for delta in found.deltas}
    for harm in found.no_harm:
        if verdicts[harm.entry, harm.metric] == "better":
            assert harm.verdict == "shown"


def test_less_is_better_where_it_is(evaluator: Evaluator) -> None:
    """Only the most popular items against only rare ones: recommending rare ones lowers arp, which is better."""
    order = np.argsort(-evaluator.counts, kind="stable")
    head, tail = (np.tile(items, (len(evaluator.users), 1)) for items in (order[:10], order[-10:]))
    pair = [entry(evaluator, "head", head), entry(evaluator, "tail", tail)]
    found = {delta.metric: delta for delta in compare(evaluator, pair, replace(QUICK, metrics=("arp", "upd"))).deltas}
    assert found["arp@10"].delta < 0
    assert found["arp@10"].verdict == "better"
    lift = compare(evaluator, pair, replace(QUICK, metrics=("popularity_lift",))).deltas[0]
    assert lift.verdict == "lower"


def test_no_harm(evaluator: Evaluator, found: Comparison) -> None:
    assert {harm.entry: harm.verdict for harm in found.no_harm}["good"] == "shown"
    good, plain = (entry(evaluator, str(share), good_lists(evaluator, share, 7)) for share in (0.6, 0.1))
    assert compare(evaluator, [good, plain], QUICK).no_harm[0].verdict == "harm"
    same = compare(evaluator, [plain, replace(plain, name="again")], QUICK).no_harm[0]
    assert same.verdict == "shown"
    assert same.allowed == pytest.approx(0.95 * same.baseline)
    assert same.metric == "recall@10/popular"


def test_the_same_lists_do_not_differ(evaluator: Evaluator) -> None:
    one = entry(evaluator, "one", good_lists(evaluator, 0.3, 0))
    found = compare(evaluator, [one, replace(one, name="two")], QUICK)
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
    exposure = compare(evaluator, [entry(evaluator, "a", lists), entry(evaluator, "b", other)], QUICK).exposure[0]
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
    found = compare(evaluator, pair, replace(QUICK, examples=len(full)))
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
        found = compare(evaluator, entries, replace(QUICK, baseline=name))
        assert found.baseline == "b"
        assert [one.name for one in found.entries] == ["b", "a"]
    with pytest.raises(InputError, match="baseline 'c' is not among the entries; choose from a, b"):
        compare(evaluator, entries, replace(QUICK, baseline="c"))
    with pytest.raises(InputError, match="one entry to compare"):
        compare(evaluator, entries[:1], QUICK)


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
