from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from dpaa.data.pairs import Pairs
from dpaa.methods.base import Histories, attach
from dpaa.methods.ppac import GLOBAL_STRENGTHS, PERSONAL_STRENGTHS, PPAC
from tests.methods.tools import (
    l2_of,
    loss_of,
    readout_of,
    rows_of_personal_popularity,
    sigmoid,
    some_graph,
    started,
    trained,
)


def test_loss_equals_the_formula() -> None:
    graph = some_graph()
    method = started(PPAC, graph, embedding_size=6, layers=2, proxy_weight=0.5, l2=0.01)
    batch = next(method.batches(1))
    final, ego, n = readout_of(method), method.tables.ego.rows().double().numpy(), graph.n_users
    p = {name: tensor.detach().double().numpy() for name, tensor in method.tables.parameters.items()}

    def network(name: str, rows: np.ndarray) -> np.ndarray:
        hidden = np.maximum(rows @ p[f"{name}_in"] + p[f"{name}_in_bias"], 0)
        return np.asarray(hidden @ p[f"{name}_out"] + p[f"{name}_out_bias"])

    personal, degree = rows_of_personal_popularity(method).double().numpy(), graph.item_degree.double().numpy()
    u, y, errors = batch.users.numpy(), [], 0.0
    for items in (batch.positive.numpy(), batch.negative.numpy()):
        near = sigmoid(np.sum(network("personal", ego[u]) * network("personal", ego[n + items]), axis=1))
        known = sigmoid(network("global", ego[n + items])[:, 0])
        y.append(np.sum(final[u] * final[n + items], axis=1) * near * known)
        errors += 0.5 * np.mean((near - personal[u, items]) ** 2)
        errors += 0.5 * np.mean((known - degree[items] / np.linalg.norm(degree)) ** 2)
    expected = np.mean(np.logaddexp(0, y[1] - y[0])) + 0.5 * errors + l2_of(method, batch)
    assert loss_of(method, batch) == pytest.approx(expected, abs=1e-6)


def test_scores_are_the_formula_and_a_very_negative_strength_ranks_by_ascending_degree() -> None:
    graph = some_graph()
    method = trained(PPAC, graph, personal_strength=3, global_strength=-2)
    users = torch.arange(graph.n_users)
    n = graph.n_users
    ego = method.tables.ego.rows()
    with torch.no_grad():
        plain = method.user_embedding @ method.item_embedding.T
        proxies = method.personal_proxy(ego[:n], ego[n:]) * method.global_proxy(ego[n:])
    expected = plain * proxies + 3 * rows_of_personal_popularity(method) - 2 * method.global_popularity
    torch.testing.assert_close(method.scorer()(users), expected)
    some = torch.tensor([7, 2, 11])
    torch.testing.assert_close(method.scorer(some)(users), expected[:, some])
    method.chosen_personal_strength, method.chosen_global_strength = 0.0, -1e9
    order = method.scorer()(users)[0].argsort(descending=True)
    assert (graph.item_degree[order].diff() >= 0).all()


def test_a_newcomer_with_a_users_items_has_that_user_as_nearest() -> None:
    graph = some_graph()
    method = trained(PPAC, graph, neighbours=1, personal_strength=1e6, global_strength=0)
    lengths = torch.bincount(graph.edge_user, minlength=graph.n_users)
    user = int(lengths.argmax())
    items = graph.edge_item[graph.edge_user == user]
    histories = Histories(Pairs.of(np.zeros(len(items)), items.numpy()), 2)  # and one without any item
    found = method.scorer(None, histories)(torch.tensor([0, 1]))
    assert set(found[0].topk(len(items)).indices.tolist()) == set(items.tolist())
    assert torch.isfinite(found).all()


class Preferring:
    def __init__(self, place: int) -> None:
        self.place = place
        self.blocks: list[Tensor] = []

    def recall_of(self, method: object) -> float:
        raise AssertionError("one pass is enough")

    def recalls_of(self, family: object, n: int, device: object = None) -> list[float]:
        self.blocks = list(family(None)(torch.arange(4)))  # type: ignore[operator]
        assert len(self.blocks) == n
        return [float(place == self.place) for place in range(n)]


def test_the_best_pair_of_strengths_is_kept() -> None:
    method = trained(PPAC, some_graph())
    assert (method.chosen_personal_strength, method.chosen_global_strength) == (0, 0)
    validation = Preferring(2 * len(GLOBAL_STRENGTHS) + 4)
    found = method.choose(validation)
    assert found == {"personal_strength": PERSONAL_STRENGTHS[2], "global_strength": GLOBAL_STRENGTHS[4]}
    assert torch.equal(method.scorer()(torch.arange(4)), validation.blocks[validation.place])
    again = attach(method, method.graph)
    again.load_state({name: tensor.detach() for name, tensor in method.state().items()})
    assert torch.equal(again.scorer()(torch.arange(4)), validation.blocks[validation.place])
