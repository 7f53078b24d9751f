from __future__ import annotations

import torch

from dpaa.methods.bc_loss import BCLoss, batch_softmax
from tests.methods.tools import some_graph, started, trained


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
