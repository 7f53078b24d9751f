import numpy as np
import pytest

from dpaa import fit
from dpaa.data.sources.world import _World, simulate, simulate_world
from dpaa.evaluation import Evaluator
from tests.evaluation.fixed import Fixed


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
    data, evaluator = world.dataset, Evaluator(world.dataset, 20)
    drawn = Fixed(data, np.random.default_rng(0).random(world.affinity.shape, dtype=np.float32))
    methods = (drawn, fit(data, "most-popular").method, fit(data, "ease").method, Fixed(data, world.affinity))
    chance, popularity, filtering, truth = (evaluator.recall(method)["recall@20"] for method in methods)
    assert popularity > 2.5 * chance
    assert filtering > 1.5 * popularity
    assert truth > 1.5 * filtering


def test_the_log_repeats_the_promotion_and_the_test_does_not(world: _World) -> None:
    dataset = world.dataset
    promoted = world.exposure > np.quantile(world.exposure, 0.8)
    assert promoted[dataset.train.item].mean() > 0.55
    assert promoted[dataset.test.item].mean() < 0.35
    assert np.corrcoef(world.appeal, np.log(world.exposure))[0, 1] == pytest.approx(0.5, abs=0.15)


def test_same_seed_same_world() -> None:
    first, second, other = (simulate(100, 80, seed=seed) for seed in (5, 5, 6))
    assert first.fingerprint == second.fingerprint != other.fingerprint
