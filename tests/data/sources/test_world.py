import numpy as np
import numpy.typing as npt
import pytest

from dpaa.data.dataset import Dataset
from dpaa.data.pairs import Pairs
from dpaa.data.sources.world import _World, simulate, simulate_world


def matrix(dataset: Dataset, pairs: Pairs) -> npt.NDArray[np.bool_]:
    filled = np.zeros((dataset.n_users, dataset.n_items), dtype=bool)
    filled[pairs.user, pairs.item] = True
    return filled


def recall(scores: npt.NDArray[np.float64], dataset: Dataset, k: int = 20) -> float:
    known, relevant = matrix(dataset, dataset.train), matrix(dataset, dataset.test)
    first = np.argsort(np.where(known, -np.inf, scores), axis=1)[:, ::-1][:, :k]
    hits, size = np.take_along_axis(relevant, first, axis=1).sum(axis=1), relevant.sum(axis=1)
    return float((hits[size > 0] / size[size > 0]).mean())


@pytest.fixture(scope="module")
def world() -> _World:
    return simulate_world()


def test_sizes(world: _World) -> None:
    dataset = world.dataset
    assert dataset.n_users == 2000
    assert 55_000 < len(dataset.train) < 65_000
    assert 20_000 < len(dataset.test) < 27_000
    assert len(dataset.valid) == pytest.approx(len(dataset.test) / 2, rel=0.1)
    assert (dataset.user_ids[0], dataset.item_ids[0]) == ("u0001", "i0001")
    assert world.affinity.shape == (dataset.n_users, dataset.n_items)
    assert not len(dataset.overlap("train", "test")) + len(dataset.overlap("valid", "test"))


def test_there_is_something_to_learn(world: _World) -> None:
    """Chance < popularity < collaborative filtering < the truth, each by a clear margin."""
    dataset = world.dataset
    train = matrix(dataset, dataset.train).astype(float)
    popularity = np.broadcast_to(train.sum(axis=0), train.shape)
    gram = np.linalg.inv(train.T @ train + 100 * np.eye(dataset.n_items))  # EASE, the shortest good recommender
    weights = gram / -np.diag(gram)
    np.fill_diagonal(weights, 0)
    chance = recall(np.random.default_rng(0).random(train.shape), dataset)
    assert recall(popularity, dataset) > 2.5 * chance
    assert recall(train @ weights, dataset) > 1.5 * recall(popularity, dataset)
    assert recall(world.affinity.astype(float), dataset) > 1.5 * recall(train @ weights, dataset)


def test_the_log_repeats_the_promotion_and_the_test_does_not(world: _World) -> None:
    dataset = world.dataset
    promoted = world.exposure > np.quantile(world.exposure, 0.8)
    assert promoted[dataset.train.item].mean() > 0.55
    assert promoted[dataset.test.item].mean() < 0.35
    assert np.corrcoef(world.appeal, np.log(world.exposure))[0, 1] == pytest.approx(0.5, abs=0.15)


def test_same_seed_same_world() -> None:
    first, second, other = (simulate(100, 80, seed=seed) for seed in (5, 5, 6))
    assert first.fingerprint == second.fingerprint != other.fingerprint
