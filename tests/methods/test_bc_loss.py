from __future__ import annotations

import pytest
import torch

from dpaa.methods.bc_loss import BCLoss, batch_softmax, with_margin
from dpaa.methods.contrast import softmax_loss
from dpaa.methods.ssm import SSM
from tests.methods.spec import ITEMS, USERS
from tests.methods.tools import some_graph, started, trained


def by_hand(margin: float) -> float:
    """User 0, item 1 against items 2 and 3, τ 0.2."""
    unit = torch.nn.functional.normalize(ITEMS)
    cosine = USERS[0] @ unit.T
    positive = with_margin(cosine[1:2], torch.tensor([margin])) / 0.2
    return softmax_loss(positive, torch.logsumexp(cosine[2:] / 0.2, dim=0, keepdim=True)).item()


def test_by_hand() -> None:
    assert by_hand(0.5) == pytest.approx(2.26606, abs=1e-5)
    assert by_hand(0.0) == pytest.approx(0.70761, abs=1e-5)


def test_without_margin_and_branch_it_is_ssm_bit_for_bit() -> None:
    graph = some_graph()
    neutral = trained(BCLoss, graph, margin=0, branch_weight=0, temperature=0.2)
    assert torch.equal(neutral.ego.rows(), trained(SSM, graph, temperature=0.2).ego.rows())
    other = trained(BCLoss, graph, branch_weight=0, temperature=0.2)
    assert not torch.equal(neutral.ego.rows(), other.ego.rows())


def test_the_branch_learns_first_and_then_stays() -> None:
    """Its own loss falls before the first epoch; afterwards nothing moves it."""
    graph = some_graph()
    method = started(BCLoss, graph, embedding_size=8, branch_epochs=60, branch_learning_rate=0.05)

    def of_branch() -> float:
        user, item = (torch.nn.functional.normalize(side) for side in method.branch(next(method.batches(1))))
        return batch_softmax(user, item, 0.1, (user * item).sum(dim=1)).item()

    before = of_branch()
    method.refresh(1)
    assert of_branch() < before
    kept = method.user_popularity.clone()
    method.refresh(2)
    assert torch.equal(method.user_popularity, kept)
    short, long = (trained(BCLoss, graph, epochs=epochs) for epochs in (1, 3))
    assert torch.equal(short.user_popularity, long.user_popularity)
    assert not long.user_popularity.requires_grad


def test_there_is_a_vector_for_every_count() -> None:
    method = started(BCLoss, some_graph())
    assert len(method.user_popularity) == len(set(method.graph.user_degree.tolist()))
    assert len(method.item_popularity) == len(set(method.graph.item_degree.tolist()))


def test_pairs_that_popularity_explains_get_less_margin() -> None:
    cosine = torch.tensor([0.3, 0.3])
    logits = with_margin(cosine, torch.tensor([0.1, 0.9]))
    assert logits[0] > logits[1]
    user, item = torch.nn.functional.normalize(USERS), torch.nn.functional.normalize(ITEMS[:3])
    plain = batch_softmax(user, item, 0.2, (user * item).sum(dim=1))
    assert batch_softmax(user, item, 0.2, with_margin((user * item).sum(dim=1), torch.full((3,), 0.5))) > plain
