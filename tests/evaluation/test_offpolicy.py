"""Off-policy estimates: by hand, in the limit, and on data whose propensities are known."""

import math
from dataclasses import replace
from math import log

import numpy as np
import polars as pl
import pytest

from dpaa.data.dataset import Dataset
from dpaa.data.ids import SPLITS
from dpaa.data.prepare import VALIDATION_EXPOSURE
from dpaa.data.sources.world import simulate
from dpaa.evaluation.offpolicy import ValidationExposure, off_policy, propensities, validation_exposure
from tests.debiasing.made import truth_of


def test_by_hand() -> None:
    # Largest count 16, power ½: propensities 1, ½, ¼ and (never seen, as if once) ¼.
    counts = np.array([16, 4, 1, 0])
    propensity, raised = propensities(counts, 0.5, 0.01)
    assert propensity.tolist() == [1.0, 0.5, 0.25, 0.25]
    assert not raised.any()
    suite = truth_of([{0, 2}, {1}], counts)
    found = off_policy(suite, np.array([[0, 3], [3, 1]]), (2,))
    # User 0: weights 1 and 4, hit on the first place; user 1: weight 2, hit on the second place.
    assert found.metrics["snips_recall@2"] == pytest.approx((1 / 5 + 1) / 2)
    assert found.metrics["stratified_recall@2"] == pytest.approx((1 + 2) / (1 + 4 + 2))
    second = 1 / math.log2(3)
    assert found.metrics["snips_ndcg@2"] == pytest.approx((1 / (4 + 1 * second) + second) / 2)
    assert found.pairs == 3
    assert found.effective_sample_size == pytest.approx((1 + 4 + 2) ** 2 / (1 + 16 + 4))
    assert (found.clipped_share, found.unseen_share) == (0.0, 0.0)


def test_estimates_are_right_on_average_where_propensities_are_known() -> None:
    """Every pair is seen with a chance ∝ count^½; the plain recall is far off, the weighted ones find the truth."""
    rng = np.random.default_rng(7)
    n_users, n_items, power = 400, 300, 0.5
    counts = np.maximum(1, (1000 / np.arange(1, n_items + 1)).astype(int))
    propensity, _ = propensities(counts, power, 1e-6)
    liked = rng.random((n_users, n_items)) < 0.5
    # Lists of a recommender that loves popular items.
    taste = np.log(counts) + rng.gumbel(size=(n_users, n_items))
    lists = np.argsort(-taste, axis=1)[:, :60]
    held = np.zeros_like(liked)
    np.put_along_axis(held, lists, values=True, axis=1)
    true_recall = np.mean((held & liked).sum(axis=1) / liked.sum(axis=1))
    true_pooled = (held & liked).sum() / liked.sum()
    snips, stratified, plain = [], [], []
    for _ in range(30):
        seen = liked & (rng.random(liked.shape) < propensity)
        relevant = [set(np.flatnonzero(row).tolist()) for row in seen]
        found = off_policy(truth_of(relevant, counts), lists, (60,), power=power, floor=1e-6)
        snips.append(found.metrics["snips_recall@60"])
        stratified.append(found.metrics["stratified_recall@60"])
        plain.append(float(np.mean((held & seen).sum(axis=1) / seen.sum(axis=1))))
        assert found.warnings == []
    assert np.mean(plain) > 1.5 * true_recall
    assert np.mean(stratified) == pytest.approx(true_pooled, rel=0.01)
    # Each user's ratio is of a small sample: right in the limit, a few per cent off here.
    assert np.mean(snips) == pytest.approx(true_recall, rel=0.1)


def test_warnings_say_why() -> None:
    counts = np.array([10_000, 1, 0])
    many = [{0} for _ in range(2000)] + [{1} for _ in range(150)]
    rare = off_policy(truth_of(many, counts), np.zeros((len(many), 1), dtype=int), (1,), power=1.0, floor=1e-4)
    assert [warning.partition(":")[0] for warning in rare.warnings] == [
        "a few rare pairs dominate the estimates (effective sample size 150 of 2,150 pairs)"
    ]
    half = [{0} for _ in range(300)] + [{2} for _ in range(300)]
    clipped = off_policy(truth_of(half, counts), np.zeros((600, 1), dtype=int), (1,), power=1.0, floor=0.5)
    (warning,) = clipped.warnings
    assert warning.startswith(
        "50% of the pairs have a propensity below the floor of 0.5, 50% an item that never occurs"
    )


def made(valid: list[tuple[int, str]]) -> Dataset:
    """Counts a 3, b 1, c 0."""
    train, test = [(1, "a"), (2, "a"), (3, "a"), (4, "b")], [(1, "c")]
    frames = (pl.DataFrame(one, schema=["user_id", "item_id"], orient="row") for one in (train, valid, test))
    return Dataset.of(dict(zip(SPLITS, frames, strict=True)), name="made", about={})


def test_tilt_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpaa.evaluation.offpolicy.ENOUGH", 0.0)  # however few pairs there are
    even = (log(4) + log(2) + log(1)) / 3
    span = 3 * log(3) / 4 - even  # training pairs without themselves: counts 2, 2, 2, 0
    assert span > 0
    found = validation_exposure(made([(5, "a"), (6, "b"), (6, "c")]))
    assert found.tilt == pytest.approx(0.0, abs=1e-12)  # each item once: as if drawn evenly
    found = validation_exposure(made([(5, "a"), (6, "b")]))
    assert found.tilt == pytest.approx(((log(4) + log(2)) / 2 - even) / span)


def test_a_part_of_the_log_leans_as_the_log_does_and_random_exposure_less() -> None:
    world = simulate(users=600, items=300, seed=2)
    found = validation_exposure(world)
    assert (found.known, found.biased) == (True, False)
    assert found.tilt < 0.8
    unsaid = validation_exposure(replace(world, about={}))
    assert unsaid == ValidationExposure(biased=False, known=False, tilt=found.tilt)
    log_pairs = pl.DataFrame({"user_id": world.train.user, "item_id": world.train.item})
    held = pl.Series(np.random.default_rng(0).random(len(log_pairs)) < 0.1)
    part = Dataset.from_frame(log_pairs.filter(~held), valid=log_pairs.filter(held), name="part")
    seen = validation_exposure(part)
    assert (seen.known, seen.biased) == (False, True)
    assert seen.tilt == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize(("said", "biased"), [("biased", True), ("unbiased", False)])
def test_what_the_source_says_counts(said: str, biased: bool) -> None:
    data = replace(made([(5, "a")]), about={VALIDATION_EXPOSURE: said})
    found = validation_exposure(data)
    assert (found.known, found.biased) == (True, biased)
    assert ("favours popularity" in found.in_words()) == biased
    assert found.as_json()["in_words"] == found.in_words()
    for nonsense in ("maybe", 3, None, ["biased"]):
        assert not validation_exposure(replace(data, about={VALIDATION_EXPOSURE: nonsense})).known
