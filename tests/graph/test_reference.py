"""The definition of right is itself held against numbers worked out by hand and against differences."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.conftest import random_pairs
from tests.graph import reference

# Users 0 and 1, items 0 and 1: u0 took both, u1 took item 0.
USER, ITEM = np.array([0, 0, 1]), np.array([0, 1, 0])
EGO = np.array([[1.0], [2.0], [3.0], [4.0]])


def toy_matrix() -> np.ndarray:
    weight = reference.symmetric_weights(2, 2, USER, ITEM)
    return reference.adjacency(2, 2, USER, ITEM, weight, weight)


def test_layers_by_hand() -> None:
    """Degrees 2, 1 of the users and 2, 1 of the items: weights 1/2, 1/√2, 1/√2."""
    root = math.sqrt(0.5)
    first = [[1.5 + 4 * root], [3 * root], [0.5 + 2 * root], [root]]
    _, found = reference.layers([toy_matrix()], EGO)
    np.testing.assert_allclose(found, first)
    np.testing.assert_allclose(reference.readout([toy_matrix()], EGO), (EGO + first) / 2)
    _, leaning = reference.layers([toy_matrix()], EGO, residual=0.5)
    np.testing.assert_allclose(leaning, np.array(first) + 0.5 * EGO)
    assert reference.readout([], EGO).tolist() == EGO.tolist()


def test_the_loss_by_hand() -> None:
    """One triple, margin 1 · (3 − 4) = −1; squares 1 + 9 + 16."""
    found = reference.bpr_with_l2(EGO, EGO, np.array([0]), np.array([2]), np.array([3]), 0.1)
    assert found == pytest.approx(math.log(1 + math.e) + 0.1 * 0.5 * 26)


@pytest.mark.parametrize("layers", [0, 1, 3])
def test_the_gradient_is_that_of_small_differences(layers: int) -> None:
    rng = np.random.default_rng(layers)
    pairs = random_pairs(rng, 4, 3, 0.6)
    weight = reference.symmetric_weights(4, 3, pairs.user, pairs.item)
    matrices = [reference.adjacency(4, 3, pairs.user, pairs.item, weight, 2 * weight)] * layers
    ego, triples = rng.normal(size=(7, 2)), (np.array([0, 1, 0]), np.array([4, 5, 5]), np.array([6, 4, 6]))

    def loss(table: np.ndarray) -> float:
        return reference.bpr_with_l2(reference.readout(matrices, table), table, *triples, 0.3)

    found = reference.bpr_with_l2_gradient(matrices, ego, *triples, 0.3)
    for place in np.ndindex(ego.shape):
        step = np.zeros_like(ego)
        step[place] = 1e-5
        assert found[place] == pytest.approx((loss(ego + step) - loss(ego - step)) / 2e-5, abs=1e-8)
