from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import softplus

from dpaa.methods.macr import MACR, REFERENCES, matched
from dpaa.methods.rows import Rows, cross_entropy
from tests.methods.tools import (
    CrossEntropyLightGCN,
    l2_of,
    loss_of,
    readout_of,
    sigmoid,
    some_graph,
    started,
    trained,
)


def test_toy_matching() -> None:
    score, item, user = torch.tensor([1.0, 2.0]), torch.tensor([0.5, 0.75]), torch.tensor([0.5, 0.5])
    own = matched(score, item, user, "own")
    assert own.tolist() == [0.25, 0.75]
    assert softplus(-own).mean().item() == pytest.approx(0.4814, abs=1e-4)
    assert softplus(-matched(score, item, user, "all")).mean().item() == pytest.approx(0.4900, abs=1e-4)


def test_the_user_branch_costs_least_at_one_half() -> None:
    logits = torch.linspace(-3, 3, 61)
    costs = torch.stack([cross_entropy(logit[None], logit[None]) for logit in logits])
    assert logits[costs.argmin()].item() == pytest.approx(0, abs=1e-6)
    assert costs.min().item() == pytest.approx(2 * math.log(2))


@pytest.mark.parametrize("pairs", ["own", "all"])
def test_loss_equals_the_formula(pairs: str) -> None:
    graph = some_graph()
    method = started(MACR, graph, embedding_size=8, layers=2, item_weight=0.3, user_weight=0.2, l2=0.01, pairs=pairs)
    batch = next(method.batches(1))
    final, n = readout_of(method), graph.n_users
    e_u, e_i, e_j = (
        final[nodes] for nodes in (batch.users.numpy(), n + batch.positive.numpy(), n + batch.negative.numpy())
    )
    w_i, w_u = method.item_branch.detach().double().numpy(), method.user_branch.detach().double().numpy()
    q_i, q_j, q_u = sigmoid(e_i @ w_i), sigmoid(e_j @ w_i), sigmoid(e_u @ w_u)
    positive, negative = np.sum(e_u * e_i, axis=1), np.sum(e_u * e_j, axis=1)
    if pairs == "own":
        y_i, y_j = positive * q_i * q_u, negative * q_j * q_u
    else:
        y_i, y_j = np.outer(q_i * q_u, positive), np.outer(q_j * q_u, negative)
    scores = np.mean(-np.log(sigmoid(y_i))) + np.mean(-np.log(1 - sigmoid(y_j)))
    items, users = np.mean(-np.log(q_i) - np.log(1 - q_j)), np.mean(-np.log(q_u) - np.log(1 - q_u))
    assert loss_of(method, batch) == pytest.approx(scores + 0.3 * items + 0.2 * users + l2_of(method, batch), abs=1e-5)


def test_without_branches_it_is_lightgcn_with_cross_entropy_bit_for_bit() -> None:
    class WithoutBranches(MACR):
        def logits(self, rows: Rows, places: Tensor, weight: Tensor) -> Tensor:
            return torch.full((len(places),), 40.0)  # σ(40) is 1 in float32

    graph = some_graph()
    neutral = trained(WithoutBranches, graph, item_weight=0, user_weight=0)
    assert torch.equal(neutral.ego.rows(), trained(CrossEntropyLightGCN, graph).ego.rows())


@pytest.fixture
def method() -> MACR:
    return trained(MACR, some_graph())


def everybody(method: MACR) -> Tensor:
    return method.scorer()(torch.arange(method.graph.n_users))


def test_references_and_rankings(method: MACR) -> None:
    attraction = torch.sigmoid(method.item_embedding @ method.item_branch.detach())
    plain = method.user_embedding @ method.item_embedding.T
    assert method.reference == 0
    torch.testing.assert_close(everybody(method), plain * attraction)
    method.reference = 1e4
    assert torch.equal(everybody(method)[0].argsort(descending=True), attraction.argsort())


class Table:
    """A validation that prefers one number."""

    def __init__(self, preferred: int) -> None:
        self.preferred = preferred
        self.blocks: list[Tensor] = []

    def recall_of(self, method: object) -> float:
        raise AssertionError("one pass is enough")

    def recalls_of(self, family: object, n: int, device: object = None) -> list[float]:
        self.blocks = list(family(None)(torch.arange(3)))  # type: ignore[operator]
        assert len(self.blocks) == n
        return [float(place == self.preferred) for place in range(n)]


def test_the_best_reference_is_kept(method: MACR) -> None:
    table = Table(3)
    assert method.tune(table) == {"reference": REFERENCES[3]}
    assert torch.equal(method.scorer()(torch.arange(3)), table.blocks[3])
    again = MACR(method.graph, method.settings)
    again.load_tensors(method.tensors())
    assert torch.equal(everybody(again), everybody(method))


def test_a_reference_that_is_set_is_not_tuned() -> None:
    method = trained(MACR, some_graph(), reference=3.5)
    assert method.tune(Table(1)) == {}
    assert method.reference == 3.5


def test_both_branches_learn() -> None:
    graph = some_graph()
    before, after = started(MACR, graph, embedding_size=40, layers=2, seed=5), trained(MACR, graph)
    for name, parameter in after.parameters.items():
        assert not torch.equal(parameter, before.parameters[name]), name
