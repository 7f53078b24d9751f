"""The popularity dial against its definition, for every kind of scores; what holds at its ends."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from dpaa import METHODS, fit
from dpaa.data import Pairs, simulate
from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods.base import Histories, Method
from dpaa.methods.graph_method import GraphMethod
from dpaa.ranking.dial import _popularity_coordinate, dialled, dialled_family
from dpaa.ranking.rank import rank
from tests.conftest import warm_users

if TYPE_CHECKING:
    from dpaa.methods.base import Scorer

kinds_of_scores = pytest.mark.parametrize("name", ["lightgcn", "ease", "item-knn", "macr", "ppac", "pd"])
"""Inner products, a closed form, neighbours, and scores with a term for popularity."""
NEWCOMERS = Histories(Pairs.of([0, 0, 0, 2], [5, 9, 30, 5]), 3)


@cache
def fitted(name: str) -> Method:
    """Trained a little on a small world."""
    settings = {"embedding_size": 16, "layers": 2, "epochs": 3, "learning_rate": 0.02, "batch_size": 1024}
    data = warm_users(simulate(users=120, items=90, seed=1))
    return fit(data, name, **(settings if issubclass(METHODS[name], GraphMethod) else {})).method


def people(method: Method) -> Tensor:
    return torch.arange(0, method.graph.n_users, 3)


def direct(method: Method, kappa: float, histories: Histories | None = None) -> np.ndarray:
    """By definition, from the method's own scores."""
    users = people(method) if histories is None else torch.arange(histories.n_users)
    own = method.scorer(None, histories)(users).double().numpy()
    return slow_dial(own, method.graph.item_degree.numpy(), kappa)


def same(found: Tensor, expected: np.ndarray) -> None:
    """To single precision of the largest score of each user."""
    largest = np.abs(expected).max(axis=1, keepdims=True)
    assert found.shape == expected.shape
    assert (np.abs(found.numpy() - expected) <= 5e-6 * largest).all()


@kinds_of_scores
@pytest.mark.parametrize("kappa", [-0.5, 2.0])
def test_scores_and_lists_are_those_of_the_definition_ties_aside(name: str, kappa: float) -> None:
    method = fitted(name)
    expected = direct(method, kappa)
    same(dialled(method, kappa)(people(method)), expected)
    block = next(rank(method, people(method).numpy(), 20, dial=kappa))
    best = -np.sort(-expected, axis=1)[:, :20]
    given_scores = np.take_along_axis(expected, block.items, axis=1)
    assert (np.sort(block.items, axis=1)[:, 1:] != np.sort(block.items, axis=1)[:, :-1]).all()  # no item twice
    largest = np.abs(expected).max(axis=1, keepdims=True)
    assert (np.abs(given_scores - best) <= 5e-6 * largest).all()  # at every place as good an item as can be


@kinds_of_scores
def test_at_zero_it_is_the_method_bit_for_bit(name: str) -> None:
    method = fitted(name)
    users = people(method)
    own = method.scorer()(users)
    assert torch.equal(dialled(method, 0.0)(users), own)
    family = dialled_family(method, [1.0, 0.0])(None)
    assert torch.equal(list(family(users))[1], own)


@kinds_of_scores
def test_candidates_change_no_score(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What κ means depends on all items, not on those that may be recommended."""
    monkeypatch.setattr("dpaa.ranking.dial.BLOCK_SCORES", 100)
    method, some = fitted(name), torch.tensor([40, 3, 7])
    for histories, users in ((None, people(method)), (NEWCOMERS, torch.arange(3))):
        whole = dialled(method, 1.5, None, histories)(users)
        torch.testing.assert_close(dialled(method, 1.5, some, histories)(users), whole[:, some], rtol=1e-4, atol=1e-5)
    scores = next(dialled_family(method, [1.5])(some)(people(method)))
    torch.testing.assert_close(scores, dialled(method, 1.5)(people(method))[:, some], rtol=1e-4, atol=1e-5)


class Given(Method):
    """A method that scores as it is told."""

    def __init__(self, scores: np.ndarray, counts: list[int]) -> None:
        n_users = max(*counts, len(scores), 1)
        users = [user for count in counts for user in range(count)]
        items = [item for item, count in enumerate(counts) for _ in range(count)]
        super().__init__()
        self.graph = BipartiteGraph.from_pairs(Pairs.of(users, items), n_users, len(counts))
        self.table = torch.from_numpy(scores).float()

    def scorer(self, items: Tensor | None = None, histories: Histories | None = None) -> Scorer:
        del histories
        return lambda index: self.table[index] if items is None else self.table[index][:, items]


@given(
    counts=st.lists(st.integers(0, 40), min_size=2, max_size=12),
    k=st.integers(1, 6),
    kappas=st.lists(
        st.sampled_from([-8.0, -2.0, -0.5, 0.0, 0.25, 1.0, 3.0, 16.0]), min_size=2, max_size=2, unique=True
    ),
    seed=st.integers(0, 10_000),
    whole=st.booleans(),
)
def test_what_enters_a_list_as_the_dial_goes_up_is_at_least_as_popular_as_what_leaves_it(
    counts: list[int], k: int, kappas: list[float], seed: int, whole: bool
) -> None:
    drawn = np.random.default_rng(seed).normal(size=(5, len(counts)))
    method = Given(drawn.round() if whole else drawn, counts)  # whole scores: ties
    low, high = sorted(kappas)
    before, after = (next(rank(method, np.arange(5), k, dial=kappa)).items for kappa in (low, high))
    popularity = _popularity_coordinate(method.graph).numpy()
    for one, other in zip(before, after, strict=True):
        leaving, entering = set(one) - set(other), set(other) - set(one)
        if leaving:
            assert min(popularity[list(entering)]) >= max(popularity[list(leaving)]) - 1e-4
        assert sum(counts[item] for item in other if item >= 0) >= sum(counts[item] for item in one if item >= 0)


def test_by_hand() -> None:
    # Counts 0, 1, 3: logs 0, log 2, 2 log 2, deviation log 2 · √(2/3).  Scores 1, 2, 3: deviation √(2/3).
    method = Given(np.array([[1.0, 2.0, 3.0], [5.0, 5.0, 5.0]]), [0, 1, 3])
    found = dialled(method, -0.5)(torch.arange(2))
    torch.testing.assert_close(found, torch.tensor([[1.0, 1.5, 2.0], [5.0, 5.0, 5.0]]))


def slow_dial(scores: np.ndarray, counts: np.ndarray, kappa: float) -> np.ndarray:
    """`score + κ · sd_u · log(1 + d_i) / sd(log(1 + d))`; `scores` are (users, all items)."""
    logs = [math.log(1.0 + float(count)) for count in counts]
    spread = deviation(logs)
    turned = np.empty(scores.shape, dtype=np.float64)
    for user, row in enumerate(scores):
        own = deviation([float(score) for score in row])
        for item, score in enumerate(row):
            popularity = logs[item] / spread if spread > 0 else 0.0
            turned[user, item] = float(score) + kappa * own * popularity
    return turned


def deviation(values: list[float]) -> float:
    """About the mean, over n; 0 where all are equal."""
    if min(values) == max(values):
        return 0.0
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))
