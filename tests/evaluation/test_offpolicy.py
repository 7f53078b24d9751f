"""Off-policy estimates: by hand, in the limit, and on data whose propensities are known."""

import math

import numpy as np
import pytest

from dpaa.evaluation.offpolicy import off_policy, propensities
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
        "a few rare pairs carry the estimates (effective sample size 150 of 2,150 pairs)"
    ]
    half = [{0} for _ in range(300)] + [{2} for _ in range(300)]
    clipped = off_policy(truth_of(half, counts), np.zeros((600, 1), dtype=int), (1,), power=1.0, floor=0.5)
    (warning,) = clipped.warnings
    assert warning.startswith(
        "50% of the pairs have a propensity below the floor of 0.5, 50% an item that never occurs"
    )
