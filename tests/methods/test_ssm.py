from __future__ import annotations

import numpy as np
import pytest
import torch

from dpaa.methods._popularity import chance_of_being_drawn
from dpaa.methods.lightgcn import LightGCN
from dpaa.methods.rows import Rows
from dpaa.methods.ssm import SSM, BatchWithItems
from tests.methods.spec import ITEMS, USERS, spec_graph, triples
from tests.methods.tools import l2_of, loss_of, readout_of, some_graph, started, trained


@pytest.mark.parametrize(("temperature", "expected"), [(0.2, 0.70761), (1.0, 0.91351)])
def test_by_hand(temperature: float, expected: float) -> None:
    """User 0, item 1 against items 2 and 3."""
    method = started(SSM, spec_graph(), embedding_size=2, l2=0, temperature=temperature, negatives="drawn")
    batch = BatchWithItems(torch.tensor([0]), torch.tensor([1]), torch.tensor([2]), torch.tensor([2, 3]))
    readout = torch.cat([USERS[[0]], ITEMS[[1]], ITEMS[[2]], ITEMS[[2, 3]]])
    assert method.loss(batch, Rows(readout, torch.zeros_like(readout))).item() == pytest.approx(expected, abs=1e-5)


def test_one_negative_of_its_own_without_normalisation_is_bpr() -> None:
    graph = some_graph()
    settings = {"negatives": "own", "similarity": "inner-product", "temperature": 1.0, "l2": 0.0}
    softmax, plain = trained(SSM, graph, **settings), trained(LightGCN, graph, l2=0.0)
    torch.testing.assert_close(softmax.ego.rows(), plain.ego.rows(), rtol=1e-4, atol=1e-6)
    batch, rows = triples((0, 1, 2), (2, 3, 2))
    spec = started(SSM, spec_graph(), embedding_size=2, **settings)
    expected = np.mean(np.log1p(np.exp([-0.5, 1.0])))  # margins 0.5 and −1
    assert spec.loss(batch, rows).item() == pytest.approx(expected, abs=1e-6)


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
    two_thirds = l2_of(method, batch) - method.settings.l2 * 0.5 * float(
        (method.item_ego[batch.negative] ** 2).sum()
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


def test_one_triple_is_a_batch_like_any_other() -> None:
    method = started(SSM, some_graph(), embedding_size=4, layers=1)
    batch, _ = triples((0, 0, 2))
    rows = method.forward(batch)
    method.loss(batch, rows).backward()
    assert torch.isfinite(method.tile_gradient(rows, 0)).all()


def test_with_log_q_the_sum_over_drawn_negatives_estimates_that_over_all_items() -> None:
    """However they are drawn: the mean over many draws of Σ exp(logit) is the sum over the whole catalogue."""
    graph = some_graph()
    for power in (0.0, 1.0):
        how = {"embedding_size": 8, "layers": 1, "negatives": "drawn", "n_negatives": 4_000, "negative_power": power}
        method = started(SSM, graph, log_q=True, temperature=1.0, batch_size=4, **how)
        batch = next(method.batches(1))
        parts = batch.split(torch.nn.functional.normalize(method.forward(batch).readout.detach()))
        everything = torch.nn.functional.normalize(torch.from_numpy(readout_of(method)).float())[graph.n_users :]
        reached = everything[graph.item_degree > 0] if power else everything
        expected = torch.exp(parts[0] @ reached.T).sum(dim=1)
        torch.testing.assert_close(method.negative_logits(batch, parts).exp(), expected, rtol=0.05, atol=0)
