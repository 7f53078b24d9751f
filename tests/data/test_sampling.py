import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaa.data.pairs import Pairs
from dpaa.methods.samplers import AnyItemSampler, BalancedSampler, TripleSampler
from tests.conftest import random_pairs


def sampler_of(pairs: Pairs, n_users: int, n_items: int) -> TripleSampler:
    counts = np.ones(len(pairs), np.int64) if pairs.count is None else pairs.count
    return TripleSampler(pairs.user, pairs.item, counts, n_users, n_items)


@pytest.mark.parametrize("how", ["user-uniform", "interaction"])
@given(seed=st.integers(0, 2**32 - 1), n_users=st.integers(1, 8), n_items=st.integers(1, 8), density=st.floats(0, 1))
def test_only_unknown_items_are_drawn(how: str, seed: int, n_users: int, n_items: int, density: float) -> None:
    pairs = random_pairs(np.random.default_rng(seed), n_users, n_items, density)
    known = set(zip(pairs.user.tolist(), pairs.item.tolist(), strict=True))
    users, positive, negative = sampler_of(pairs, n_users, n_items).epoch(np.random.default_rng(seed), how)
    assert len(users) == len(positive) == len(negative) <= len(pairs)
    assert all(pair in known for pair in zip(users.tolist(), positive.tolist(), strict=True))
    assert not any(pair in known for pair in zip(users.tolist(), negative.tolist(), strict=True))
    assert ((negative >= 0) & (negative < n_items)).all()


def test_interaction_visits_every_pair_once_and_repeated_ones_as_often_as_they_count() -> None:
    pairs = Pairs.of([0, 0, 1], [0, 1, 2], [3, 1, 2])
    users, positive, _ = sampler_of(pairs, 2, 5).epoch(np.random.default_rng(0), "interaction")
    found = sorted(zip(users.tolist(), positive.tolist(), strict=True))
    assert found == [(0, 0)] * 3 + [(0, 1)] + [(1, 2)] * 2


def test_repeated_pairs_are_liked_in_proportion() -> None:
    pairs = Pairs.of(np.repeat(np.arange(1000), 2), np.tile([0, 1], 1000), np.tile([9, 1], 1000))
    _, positive, _ = sampler_of(pairs, 1000, 5).epoch(np.random.default_rng(0), "user-uniform")
    assert np.mean(positive == 0) == pytest.approx(0.9, abs=0.02)


def test_users_with_nothing_or_everything_are_skipped() -> None:
    sampler = sampler_of(Pairs.of([0, 0, 1], [0, 1, 0]), 3, 2)
    for how in ("user-uniform", "interaction"):
        users, _, negative = sampler.epoch(np.random.default_rng(0), how)
        assert set(users.tolist()) <= {1}
        assert set(negative.tolist()) <= {1}


@pytest.mark.parametrize("how", ["user-uniform", "interaction"])
@pytest.mark.parametrize("n", [65_535, 65_537])
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


@pytest.mark.parametrize("kind", [TripleSampler, AnyItemSampler, BalancedSampler])
@pytest.mark.parametrize("how", ["user-uniform", "interaction"])
@pytest.mark.parametrize("repeated", [False, True])
def test_threads_change_no_triple(
    kind: type[TripleSampler], how: str, repeated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpaa.methods.samplers.BLOCK", 50)
    rng = np.random.default_rng(0)
    keys = np.unique(rng.integers(0, 40 * 30, 700))
    counts = rng.integers(1, 4, len(keys)) if repeated else np.ones(len(keys), np.int64)
    drawn = []
    for threads in (1, 2, 5):
        sampler = kind(keys // 30, keys % 30, counts, 41, 30)
        sampler.threads = threads
        drawn.append([sampler.epoch(np.random.default_rng(seed), how) for seed in range(3)])
    for other in drawn[1:]:
        for one, again in zip(drawn[0], other, strict=True):
            assert all((a == b).all() for a, b in zip(one, again, strict=True))


def test_draws_are_those_of_one_generator_in_the_order_of_the_triples(monkeypatch: pytest.MonkeyPatch) -> None:
    """The slow twin: block by block, users first, then their items, then what they did not take."""
    monkeypatch.setattr("dpaa.methods.samplers.BLOCK", 50)
    keys = np.unique(np.random.default_rng(0).integers(0, 40 * 30, 700))
    taken = [set((keys % 30)[keys // 30 == user].tolist()) for user in range(41)]
    sampler = TripleSampler(keys // 30, keys % 30, np.ones(len(keys), np.int64), 41, 30)
    sampler.threads = 3
    users, positive, negative = sampler.epoch(np.random.default_rng(7), "user-uniform")
    rng, n = np.random.default_rng(7), len(keys)

    def blocks(values: list[int]) -> list[list[int]]:
        return [values[first : first + 50] for first in range(0, len(values), 50)]

    drawn = [int(user) for size in map(len, blocks([0] * n)) for user in rng.integers(0, 41, size)]
    drawn = [user for user in drawn if taken[user]]
    liked = []
    for block in blocks(drawn):
        places = rng.integers([0] * len(block), [len(taken[user]) for user in block])
        liked += [sorted(taken[user])[place] for user, place in zip(block, places, strict=True)]
    other = []
    for block in blocks(drawn):
        places = rng.integers(0, [30 - len(taken[user]) for user in block])
        missing = [[item for item in range(30) if item not in taken[user]] for user in block]
        other += [items[place] for items, place in zip(missing, places, strict=True)]
    assert (users.tolist(), positive.tolist(), negative.tolist()) == (drawn, liked, other)
