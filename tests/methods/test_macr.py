from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.functional import softplus

from dpaa.methods.base import attach
from dpaa.methods.macr import MACR, REFERENCES, matched
from tests.methods.tools import (
    some_graph,
    trained,
)


def test_toy_matching() -> None:
    score, item, user = torch.tensor([1.0, 2.0]), torch.tensor([0.5, 0.75]), torch.tensor([0.5, 0.5])
    own = matched(score, item, user, "own")
    assert own.tolist() == [0.25, 0.75]
    assert softplus(-own).mean().item() == pytest.approx(0.4814, abs=1e-4)
    assert softplus(-matched(score, item, user, "all")).mean().item() == pytest.approx(0.4900, abs=1e-4)


@pytest.fixture
def method() -> MACR:
    return trained(MACR, some_graph())


def everybody(method: MACR) -> Tensor:
    return method.scorer()(torch.arange(method.graph.n_users))


def test_references_and_rankings(method: MACR) -> None:
    attraction = torch.sigmoid(method.item_embedding @ method.item_branch.detach())
    plain = method.user_embedding @ method.item_embedding.T
    assert method.chosen_reference == 0
    torch.testing.assert_close(everybody(method), plain * attraction)
    method.chosen_reference = 1e4
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
    assert method.choose(table) == {"reference": REFERENCES[3]}
    assert torch.equal(method.scorer()(torch.arange(3)), table.blocks[3])
    again = attach(method, method.graph)
    again.load_state(method.state())
    assert torch.equal(everybody(again), everybody(method))


def test_a_reference_that_is_set_is_not_tuned() -> None:
    method = trained(MACR, some_graph(), reference=3.5)
    assert method.choose(Table(1)) == {}
    assert method.chosen_reference == 3.5
