from __future__ import annotations

import numpy as np
import pytest
import torch

from dpaa.methods._popularity import chance_of_being_drawn
from dpaa.methods.ssm import SSM, BatchWithItems
from tests.methods.tools import (
    l2_of,
    loss_of,
    readout_of,
    some_graph,
    started,
    trained,
)


@pytest.mark.parametrize("log_q", [False, True])
@pytest.mark.parametrize("known", ["keep", "hide"])
@pytest.mark.parametrize("negatives", ["batch", "drawn"])
def test_loss_equals_the_formula(negatives: str, known: str, log_q: bool) -> None:
    graph = some_graph()
    method = started(
        SSM, graph, embedding_size=8, layers=2, l2=0.01, negatives=negatives, known_negatives=known, log_q=log_q,
        n_negatives=9, negative_power=0.5,
    )  # fmt: skip
    batch = next(method.batches(1))
    final, n = readout_of(method), graph.n_users
    unit = final / np.linalg.norm(final, axis=1, keepdims=True)
    taken = set(zip(graph.edge_user.tolist(), graph.edge_item.tolist(), strict=True))
    columns = batch.items if isinstance(batch, BatchWithItems) else batch.positive
    weight = graph.item_degree.double().numpy() ** 0.5
    q = weight / weight.sum() if negatives == "drawn" else chance_of_being_drawn(graph, "user-uniform").numpy()
    many = len(columns) - (negatives == "batch")
    total = 0.0
    for place, (user, item) in enumerate(zip(batch.users.tolist(), batch.positive.tolist(), strict=True)):
        logit = [unit[user] @ unit[n + item] / 0.1]
        for other, column in enumerate(columns.tolist()):
            if negatives == "batch" and other == place:
                continue
            if known == "hide" and (user, column) in taken:
                continue
            logit.append(unit[user] @ unit[n + column] / 0.1 - (np.log(max(many * q[column], 1e-12)) if log_q else 0))
        total += np.logaddexp.reduce(logit) - logit[0]
    two_thirds = l2_of(method, batch) - method.l2 * 0.5 * float(
        (method.tables.item_ego[batch.negative] ** 2).sum()
    ) / len(batch)
    assert loss_of(method, batch) == pytest.approx(total / len(batch) + two_thirds, abs=2e-5)


@pytest.mark.parametrize("sampler", ["user-uniform", "interaction"])
def test_the_chance_of_an_item_is_that_of_the_sampler(sampler: str) -> None:
    graph = some_graph()
    method = started(SSM, graph, sampler=sampler, batch_size=4096)
    drawn = torch.cat([batch.positive for epoch in range(1, 200) for batch in method.batches(epoch)])
    share = torch.bincount(drawn, minlength=graph.n_items) / len(drawn)
    torch.testing.assert_close(share, chance_of_being_drawn(graph, sampler), atol=0.01, rtol=0)


def test_drawn_items_are_a_function_of_seed_epoch_and_place() -> None:
    method = started(SSM, some_graph(), negatives="drawn", n_negatives=50, batch_size=16, negative_power=1)
    whole, late = list(method.batches(2)), list(method.batches(2, start=1))
    assert isinstance(whole[1], BatchWithItems)
    assert isinstance(late[0], BatchWithItems)
    assert torch.equal(whole[1].items, late[0].items)
    assert (method.graph.item_degree[whole[1].items] > 0).all()  # never an item that nobody took


def test_ranking_by_cosine_leaves_lengths_of_items_out() -> None:
    graph = some_graph()
    plain, cosine = trained(SSM, graph), trained(SSM, graph, ranking="cosine")
    items = torch.nn.functional.normalize(plain.item_embedding)
    torch.testing.assert_close(cosine.scorer()(torch.arange(3)), plain.user_embedding[:3] @ items.T)
    some = torch.tensor([4, 1])
    torch.testing.assert_close(cosine.scorer(some)(torch.arange(3)), cosine.scorer()(torch.arange(3))[:, some])


def test_with_log_q_the_sum_over_drawn_negatives_estimates_that_over_all_items() -> None:
    """However they are drawn: the mean over many draws of Σ exp(logit) is the sum over the whole catalogue."""
    graph = some_graph()
    for power in (0.0, 1.0):
        how = {"embedding_size": 8, "layers": 1, "negatives": "drawn", "n_negatives": 4_000, "negative_power": power}
        method = started(SSM, graph, log_q=True, temperature=1.0, batch_size=4, **how)
        batch = next(method.batches(1))
        parts = batch.split(torch.nn.functional.normalize(method.tables.forward(batch).readout.detach()))
        everything = torch.nn.functional.normalize(torch.from_numpy(readout_of(method)).float())[graph.n_users :]
        reached = everything[graph.item_degree > 0] if power else everything
        expected = torch.exp(parts[0] @ reached.T).sum(dim=1)
        torch.testing.assert_close(method.negative_logits(batch, parts).exp(), expected, rtol=0.05, atol=0)
