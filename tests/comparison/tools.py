"""What the tests of comparisons share: lists of a given quality, and entries made of them."""

from typing import Any

import numpy as np

from dpaa.comparison import Entry
from dpaa.evaluation.evaluator import Evaluator

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
