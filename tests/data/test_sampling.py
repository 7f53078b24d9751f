from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaa.data.pairs import Pairs
from dpaa.data.sampling import TripleSampler
from tests.conftest import random_pairs


def sampler_of(pairs: Pairs, n_users: int, n_items: int) -> TripleSampler:
    counts = np.ones(len(pairs), np.int64) if pairs.count is None else pairs.count
    return TripleSampler(pairs.user, pairs.item, counts, n_users, n_items)


@pytest.mark.parametrize("how", ["user-uniform", "interaction"])
@given(seed=st.integers(0, 2**32 - 1), n_users=st.integers(1, 8), n_items=st.integers(1, 8), density=st.floats(0, 1))
def test_other_is_never_a_known_positive_and_liked_always_is(
    how: str, seed: int, n_users: int, n_items: int, density: float
) -> None:
    pairs = random_pairs(np.random.default_rng(seed), n_users, n_items, density)
    known = set(zip(pairs.user.tolist(), pairs.item.tolist(), strict=True))
    users, positive, negative = sampler_of(pairs, n_users, n_items).epoch(np.random.default_rng(seed), how)
    assert len(users) == len(positive) == len(negative) <= len(pairs)
    assert all(pair in known for pair in zip(users.tolist(), positive.tolist(), strict=True))
    assert not any(pair in known for pair in zip(users.tolist(), negative.tolist(), strict=True))
    assert ((negative >= 0) & (negative < n_items)).all()


def test_other_items_are_uniform() -> None:
    pairs = Pairs.of([0, 0, 0], [1, 4, 5])
    sampler = sampler_of(Pairs(np.repeat(pairs.user, 1), pairs.item), 1, 8)
    rng = np.random.default_rng(0)
    drawn = np.concatenate([sampler.epoch(rng, "interaction")[2] for _ in range(5000)])
    share = np.bincount(drawn, minlength=8) / len(drawn)
    np.testing.assert_allclose(share, [0.2, 0, 0.2, 0.2, 0, 0, 0.2, 0.2], atol=0.015)


def test_users_are_uniform_whatever_their_number_of_items() -> None:
    pairs = Pairs.of([0] * 9 + [1], [*range(9), 0])
    sampler = sampler_of(pairs, 2, 20)
    rng = np.random.default_rng(0)
    users = np.concatenate([sampler.epoch(rng, "user-uniform")[0] for _ in range(2000)])
    assert np.mean(users == 1) == pytest.approx(0.5, abs=0.02)


def test_interaction_visits_every_pair_once_and_repeated_ones_as_often_as_they_count() -> None:
    pairs = Pairs.of([0, 0, 1], [0, 1, 2], [3, 1, 2])
    users, positive, _ = sampler_of(pairs, 2, 5).epoch(np.random.default_rng(0), "interaction")
    found = sorted(zip(users.tolist(), positive.tolist(), strict=True))
    assert found == [(0, 0)] * 3 + [(0, 1)] + [(1, 2)] * 2


def test_repeated_pairs_are_liked_in_proportion() -> None:
    sampler = sampler_of(Pairs.of([0, 0], [0, 1], [9, 1]), 1, 5)
    rng = np.random.default_rng(0)
    positive = np.concatenate([sampler.epoch(rng, "user-uniform")[1] for _ in range(1000)])
    assert np.mean(positive == 0) == pytest.approx(0.9, abs=0.02)


def test_users_with_nothing_or_everything_are_skipped_and_counted() -> None:
    sampler = sampler_of(Pairs.of([0, 0, 1], [0, 1, 0]), 3, 2)
    assert (sampler.users_with_every_item, sampler.users_without_items, sampler.n_usable_users) == (1, 1, 1)
    for how in ("user-uniform", "interaction"):
        users, _, negative = sampler.epoch(np.random.default_rng(0), how)
        assert set(users.tolist()) <= {1}
        assert set(negative.tolist()) <= {1}


@pytest.mark.parametrize("how", ["user-uniform", "interaction"])
@pytest.mark.parametrize("n", [65_535, 65_536, 65_537, 70_000])
def test_large_numbers_are_kept_whole(n: int, how: str) -> None:
    """Users and items around the largest number that 16 bits hold."""
    users, items = np.arange(n - 200, n, dtype=np.int32), np.full(200, n - 1, dtype=np.int32)
    drawn, positive, negative = sampler_of(Pairs(users, items), n, n).epoch(np.random.default_rng(0), "interaction")
    assert set(drawn.tolist()) == set(users.tolist())
    assert set(positive.tolist()) == {n - 1}
    few = sampler_of(Pairs(users - (n - 200), items), 200, n).epoch(np.random.default_rng(0), how)
    assert set(few[1].tolist()) == {n - 1}
    largest = max(negative.max(), few[2].max())
    assert 0.95 * n < largest < n - 1
