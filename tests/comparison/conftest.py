from typing import Any

import numpy as np
import pytest

from dpaa.comparison import Comparison, Entry, compare_entries
from dpaa.data.dataset import Dataset
from dpaa.evaluation.evaluator import Evaluator


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


QUICK: dict[str, Any] = {"resamples": 300}


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
