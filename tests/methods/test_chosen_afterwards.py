"""MACR, PPAC and DAP: scores, and strengths that validation chooses after training."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from dpaa.graph.bipartite import BipartiteGraph
from dpaa.methods.base import attach
from dpaa.methods.dap import DAP, anchors
from dpaa.methods.macr import MACR, REFERENCES
from dpaa.methods.ppac import GLOBAL_STRENGTHS, PERSONAL_STRENGTHS, PPAC
from tests.methods.tools import TOY_EGO, ego_of, l2_of, loss_of, readout_of, sigmoid, some_graph, started, trained


class Preferring:
    """A validation that prefers one of the strengths, in one pass."""

    def __init__(self, preferred: int) -> None:
        self.preferred, self.blocks = preferred, list[Tensor]()

    def recall_of(self, method: object) -> float:
        raise AssertionError("one pass is enough")

    def recalls_of(self, family: Any, n: int, device: object = None) -> list[float]:
        self.blocks = list(family(None)(torch.arange(4)))
        assert len(self.blocks) == n
        return [float(number == self.preferred) for number in range(n)]


def reloaded(method: Any) -> Any:
    again = attach(method, method.graph)
    again.load_state({name: tensor.detach() for name, tensor in method.state().items()})
    return again


def test_references_and_rankings_of_macr() -> None:
    method = trained(MACR, some_graph())
    everybody = torch.arange(method.graph.n_users)
    attraction = torch.sigmoid(method.item_embedding @ method.item_branch.detach())
    plain = method.user_embedding @ method.item_embedding.T
    assert method.chosen_reference == 0
    torch.testing.assert_close(method.scorer()(everybody), plain * attraction)
    validation = Preferring(3)
    assert method.choose(validation) == {"reference": REFERENCES[3]}
    for one in (method, reloaded(method)):
        assert torch.equal(one.scorer()(torch.arange(4)), validation.blocks[3])
    method.chosen_reference = 1e4
    assert torch.equal(method.scorer()(everybody)[0].argsort(descending=True), attraction.argsort())


def personal_popularity(method: PPAC) -> np.ndarray:
    """PP by the definition, from the method's similar users."""
    graph = method.graph
    counts = np.zeros((graph.n_users, graph.n_items))
    for user, similar in enumerate(method.similar_users.tolist()):
        for other in similar:
            if other >= 0:
                counts[user, graph.edge_item[graph.edge_user == other].numpy()] += 1
    norms = np.linalg.norm(counts, axis=1, keepdims=True)
    return np.asarray(counts / np.where(norms > 0, norms, 1))


@pytest.mark.parametrize("k", [1, 4, 40])
def test_similar_users_and_their_popularity_equal_the_definition(k: int) -> None:
    graph = some_graph()
    method = started(PPAC, graph, neighbours=k)
    taken = [set(graph.edge_item[graph.edge_user == user].tolist()) for user in range(graph.n_users)]
    for user, mine in enumerate(taken):
        jaccard = [
            (len(mine & theirs) / len(mine | theirs), other)
            for other, theirs in enumerate(taken)
            if other != user and mine & theirs
        ]
        best = [other for _, other in sorted(jaccard, reverse=True)[:k]]  # ties to the larger user
        assert method.similar_users[user].tolist() == best + [-1] * (k - len(best))
    users, items = torch.meshgrid(torch.arange(graph.n_users), torch.arange(graph.n_items), indexing="ij")
    pairs = method.personal_popularity(users.reshape(-1), items.reshape(-1)).view(users.shape)
    np.testing.assert_allclose(pairs, personal_popularity(method), atol=1e-6)


def test_loss_of_ppac_equals_the_formula() -> None:
    graph = some_graph()
    method = started(PPAC, graph, embedding_size=6, layers=2, proxy_weight=0.5, l2=0.01)
    batch = next(method.batches(1))
    final, ego, n = readout_of(method), ego_of(method).double().numpy(), graph.n_users
    p = {name: tensor.detach().double().numpy() for name, tensor in method.tables.parameters.items()}

    def network(name: str, rows: np.ndarray) -> np.ndarray:
        hidden = np.maximum(rows @ p[f"{name}_in"] + p[f"{name}_in_bias"], 0)
        return np.asarray(hidden @ p[f"{name}_out"] + p[f"{name}_out_bias"])

    personal, degree = personal_popularity(method), graph.item_degree.double().numpy()
    u, y, errors = batch.users.numpy(), [], 0.0
    for items in (batch.positive.numpy(), batch.negative.numpy()):
        near = sigmoid(np.sum(network("personal", ego[u]) * network("personal", ego[n + items]), axis=1))
        known = sigmoid(network("global", ego[n + items])[:, 0])
        y.append(np.sum(final[u] * final[n + items], axis=1) * near * known)
        errors += 0.5 * np.mean((near - personal[u, items]) ** 2)
        errors += 0.5 * np.mean((known - degree[items] / np.linalg.norm(degree)) ** 2)
    expected = np.mean(np.logaddexp(0, y[1] - y[0])) + 0.5 * errors + l2_of(method, batch)
    assert loss_of(method, batch) == pytest.approx(expected, abs=1e-6)


def test_scores_of_ppac_are_the_formula() -> None:
    graph = some_graph()
    method = trained(PPAC, graph, personal_strength=3, global_strength=-2)
    users, ego = torch.arange(graph.n_users), ego_of(method)
    with torch.no_grad():
        taste = method.network("personal", ego)
        proxies = torch.sigmoid(taste[: len(users)] @ taste[len(users) :].T) * method.global_proxy(ego[len(users) :])
    plain = method.user_embedding @ method.item_embedding.T * proxies
    personal = torch.from_numpy(personal_popularity(method)).float()
    expected = plain + 3 * personal - 2 * method.global_popularity
    torch.testing.assert_close(method.scorer()(users), expected)
    some = torch.tensor([7, 2, 11])
    torch.testing.assert_close(method.scorer(some)(users), expected[:, some])
    method.chosen_personal_strength, method.chosen_global_strength = 0.0, -1e9
    order = method.scorer()(users)[0].argsort(descending=True)
    assert (graph.item_degree[order].diff() >= 0).all(), "a very negative strength ranks by ascending degree"


def test_the_best_pair_of_strengths_is_kept() -> None:
    method = trained(PPAC, some_graph())
    assert (method.chosen_personal_strength, method.chosen_global_strength) == (0, 0)
    validation = Preferring(2 * len(GLOBAL_STRENGTHS) + 4)
    found = method.choose(validation)
    assert found == {"personal_strength": PERSONAL_STRENGTHS[2], "global_strength": GLOBAL_STRENGTHS[4]}
    for one in (method, reloaded(method)):
        assert torch.equal(one.scorer()(torch.arange(4)), validation.blocks[validation.preferred])


def test_toy_with_one_cluster_every_entry_drops_by_the_strength(toy_graph: BipartiteGraph) -> None:
    method = started(DAP, toy_graph, embedding_size=1, layers=1, high_strength=0.1, low_strength=0.1, clusters=1)
    method.tables.restore({"ego": TOY_EGO})
    method.finish()
    layer = torch.tensor([4.3284, 2.1213, 1.9142, 0.7071, 0.0]) - 0.1
    expected = (TOY_EGO.squeeze(1) + layer) / 2
    found = torch.cat([method.user_embedding, method.item_embedding]).squeeze(1)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)


@given(seed=st.integers(0, 60), clusters=st.integers(1, 4))
def test_anchors_equal_the_definition(seed: int, clusters: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 25))
    rows, degree, cluster = rng.normal(size=(n, 3)), rng.integers(1, 6, n), rng.integers(0, clusters, n)
    higher, lower = np.zeros_like(rows), np.zeros_like(rows)
    for node in range(n):
        mates = cluster == cluster[node]
        for out, chosen in ((higher, degree > degree[node]), (lower, degree < degree[node])):
            if (mates & chosen).any():
                out[node] = rows[mates & chosen].mean(axis=0)
    found = anchors(torch.from_numpy(rows), torch.from_numpy(degree), torch.from_numpy(cluster))
    np.testing.assert_allclose(found[0], higher, atol=1e-12)
    np.testing.assert_allclose(found[1], lower, atol=1e-12)


class Wish:
    """A validation that wants certain strengths and counts its calls."""

    def __init__(self, high: float, low: float, clusters: int) -> None:
        self.wish, self.calls = (high, low, clusters), 0

    def recall_of(self, method: Any) -> float:
        self.calls += 1
        high, low, clusters = self.wish
        distance = abs(method.chosen_high_strength - high) + abs(method.chosen_low_strength - low)
        return 1 - float(distance) - 0.01 * (method.chosen_clusters != clusters)

    def recalls_of(self, family: object, n: int, device: object = None) -> list[float]:
        raise AssertionError


def test_the_grid_of_dap_finds_what_validation_wants() -> None:
    method = trained(DAP, some_graph())
    wish = Wish(0.625, 0.5, 10)
    assert method.choose(wish) == {"high_strength": 0.625, "low_strength": 0.5, "clusters": 10}
    assert wish.calls == 10 + 8
    again = reloaded(method)
    assert (again.chosen_high_strength, again.chosen_clusters) == (0.625, 10)
    assert torch.equal(again.scorer()(torch.arange(3)), method.scorer()(torch.arange(3)))
